/* As many threads as OpenMP chooses, all busy for 4 s from when the last has started; prints how many they were. */
#include <omp.h>
#include <stdio.h>

int main(void)
{
	int threads = 0;
	double end;

#pragma omp parallel reduction(+ : threads)
	{
#pragma omp barrier
#pragma omp single
		end = omp_get_wtime() + 4;
		while (omp_get_wtime() < end)
			;
		threads = 1;
	}
	printf("%d\n", threads);
	return 0;
}
