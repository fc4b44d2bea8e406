/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Prints what it takes to make a worker ready for the next session (recycling.h), by the
 * number of its writable pages and of the descriptors that a session has opened. Nothing is
 * compared with the figures.
 */
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "recycling.h"

#define WIDTH 22         /* columns of a printed estimate */
#define FSGSBASE 2u      /* in AT_HWCAP2: the code sets the thread's base without a system call */
#define DESCRIPTORS 2048 /* that a process may have */

static const struct setting settings[] = {
    {16, 0}, {64, 0}, {256, 0}, {1024, 0}, {4096, 0}, {64, 16}, {64, 128}, {64, 1024}};

struct estimate {
	double median, low, high;
};

static int
compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The median, and an interval that holds it with 95 % confidence: order statistics. */
static struct estimate
estimate(const double *samples)
{
	const size_t low = (size_t)((ROUNDS - 1.96 * sqrt(ROUNDS)) / 2);
	double sorted[ROUNDS];

	memcpy(sorted, samples, sizeof(sorted));
	qsort(sorted, ROUNDS, sizeof(*sorted), compare);
	return (struct estimate){sorted[ROUNDS / 2], sorted[low], sorted[ROUNDS - 1 - low]};
}

/* How many times what the roll-back takes another kind takes, compared within rounds. */
static struct estimate
ratio(const struct samples *samples, enum kind kind)
{
	double ratios[ROUNDS];

	for (size_t i = 0; i < ROUNDS; i++)
		ratios[i] = samples->time[kind][i] / samples->time[ROLLED_BACK][i];
	return estimate(ratios);
}

static void
print_estimate(struct estimate found, int decimals)
{
	char text[64];

	if (found.median >= 10)
		decimals--;
	(void)snprintf(text, sizeof(text), "%.*f [%.*f, %.*f]", decimals, found.median, decimals,
	    found.low, decimals, found.high);
	(void)printf(" %*s", WIDTH - 1, text); /* a busy machine has wider ones */
}

static void
print_heading(void)
{
	const char *headings[] = {
	    "rolled back", "forked, none written", "ratio", "forked, all written", "ratio"};

	(void)printf(
	    "Microseconds until a worker is ready for the next session, and how many times "
	    "as many as rolled back:\nmedians of %d rounds with 95 %% intervals.\n\n%6s %11s",
	    ROUNDS, "pages", "descriptors");
	for (size_t i = 0; i < COUNT(headings); i++)
		(void)printf("%*s", WIDTH, headings[i]);
	(void)printf("\n");
}

static void
print_row(struct setting setting, const struct samples *samples)
{
	(void)printf("%6zu %11d", setting.pages, setting.descriptors);
	print_estimate(estimate(samples->time[ROLLED_BACK]), 1);
	for (enum kind kind = FORKED; kind < KINDS; kind++) {
		print_estimate(estimate(samples->time[kind]), 1);
		print_estimate(ratio(samples, kind), 2);
	}
	(void)printf("\n");
}

/*
 * Says from how many pages on, without descriptors, a kind takes less time than the roll-back.
 * Between two sizes, the ratio is taken for a power of the number of pages.
 */
static void
print_crossing(const struct samples *samples, enum kind kind, const char *what)
{
	double before = INFINITY, pages = 0;

	for (size_t i = 0; i < COUNT(settings) && settings[i].descriptors == 0; i++) {
		double found = ratio(&samples[i], kind).median, size = (double)settings[i].pages;

		if (found < 1) {
			if (i > 0)
				size = pages * pow(size / pages, log(before) / log(before / found));
			(void)printf("%s takes less from about %.0f pages on.\n", what, size);
			return;
		}
		before = found;
		pages = size;
	}
	(void)printf("%s takes more up to %.0f pages.\n", what, pages);
}

/* Lets this process and its children run on one processor, with enough descriptors. */
static void
prepare(void)
{
	struct rlimit limit;
	cpu_set_t processor;

	if ((getauxval(AT_HWCAP2) & FSGSBASE) == 0)
		errx(1, "workers cannot be rolled back here: there is no FSGSBASE");
	MUST(getrlimit(RLIMIT_NOFILE, &limit) == 0);
	limit.rlim_cur = DESCRIPTORS;
	MUST(setrlimit(RLIMIT_NOFILE, &limit) == 0);
	CPU_ZERO(&processor);
	CPU_SET((size_t)sched_getcpu(), &processor);
	MUST(sched_setaffinity(0, sizeof(processor), &processor) == 0);
}

int
main(void)
{
	struct samples *samples = mmap(NULL, sizeof(*samples) * COUNT(settings),
	    PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	MUST(samples != MAP_FAILED);
	prepare();
	print_heading();
	for (size_t i = 0; i < COUNT(settings); i++) {
		(void)fflush(stdout);
		recycling_measure(settings[i], &samples[i]);
		print_row(settings[i], &samples[i]);
	}
	(void)printf("\n");
	print_crossing(samples, FORKED, "A forked worker that writes no page");
	print_crossing(samples, FORKED_WRITTEN, "A forked worker that writes all its pages");
	return 0;
}
