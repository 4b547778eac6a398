/** As many threads as Java sees processors, each busy until the deadline; prints how many they were. */
class Busy {
    public static void main(String[] arguments) throws InterruptedException {
        Thread[] threads = new Thread[Runtime.getRuntime().availableProcessors()];
        for (int number = 0; number < threads.length; number++) {
            threads[number] = new Thread(() -> {
                for (long end = System.nanoTime() + 6_000_000_000L; System.nanoTime() < end; )
                    ;
            });
            threads[number].start();
        }
        for (Thread thread : threads)
            thread.join();
        System.out.println(threads.length);
    }
}
