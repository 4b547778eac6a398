// As many goroutines as Go runs at once, each busy until the deadline; prints how many they were.
package main

import (
	"runtime"
	"sync"
	"time"
)

func main() {
	var all sync.WaitGroup
	for n := 0; n < runtime.GOMAXPROCS(0); n++ {
		all.Add(1)
		go func() {
			defer all.Done()
			for end := time.Now().Add(4 * time.Second); time.Now().Before(end); {
			}
		}()
	}
	all.Wait()
	println(runtime.GOMAXPROCS(0))
}
