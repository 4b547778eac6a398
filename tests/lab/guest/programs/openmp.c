/* As many threads as OpenMP chooses, each busy until the deadline; prints how many they were. */
#include <omp.h>
#include <stdio.h>

int main(void)
{
	int threads = 0;

#pragma omp parallel reduction(+ : threads)
	{
		double end = omp_get_wtime() + 4;

		while (omp_get_wtime() < end)
			;
		threads = 1;
	}
	printf("%d\n", threads);
	return 0;
}
