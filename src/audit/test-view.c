// SPDX-License-Identifier: Apache-2.0
/* view.h: what is trimmed away is not mapped, and is what it was when it is looked at again. */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/check.h"
#include "view.h"

#define PIECES 64
#define SIZE   (PIECES * (size_t)VIEW_PIECE - 4096)

/* Whether anything of a file is mapped at an address; what is only reserved is not. */
static bool is_mapped(const struct view *view, size_t at)
{
	int fds[2];
	bool good;

	/* The kernel reads it for us, and says so if there is nothing. */
	if (pipe(fds))
		return false;
	good = write(fds[1], view->base + at, 1) == 1;
	close(fds[0]);
	close(fds[1]);
	return good;
}

static void fill(int *numbers)
{
	for (size_t i = 0; i < SIZE / sizeof(int); i++)
		numbers[i] = i;
}

static void case_trim(struct view *view)
{
	view_trim(view, 100);
	check(view->n_mapped == 1 && is_mapped(view, 0) && is_mapped(view, VIEW_PIECE - 1) &&
		      !is_mapped(view, VIEW_PIECE) && !is_mapped(view, SIZE - 1),
	      "view: the first piece stays, nothing else");
	view_trim(view, 100);
	check(view->n_mapped == 1, "view: nothing is left to trim");
}

static void case_reach(struct view *view)
{
	int *numbers = (int *)view->base;
	size_t edge = 7 * (size_t)VIEW_PIECE / sizeof(int), last = SIZE / sizeof(int) - 1;
	int *p = view_reach(view, &numbers[edge - 1], 2 * sizeof(int));

	check(view->n_mapped == 3 && p[0] == (int)edge - 1 && p[1] == (int)edge,
	      "view: a record on the border of two pieces");
	p = view_reach(view, &numbers[last], sizeof(int));
	check(view->n_mapped == 4 && *p == (int)last, "view: the last record");
	*p = -1;
	view_trim(view, 0);
	check(view->n_mapped == 0, "view: all is trimmed");
	check(*(int *)view_reach(view, p, sizeof(*p)) == -1 && view->n_mapped == 1,
	      "view: what was written is there again");
}

static void case_whole(struct view *view)
{
	check(view_whole(view) == 0 && view->n_mapped == PIECES && is_mapped(view, 0) &&
		      is_mapped(view, SIZE - 1),
	      "view: all of it");
}

int main(void)
{
	int fd = memfd_create("view", MFD_CLOEXEC);
	struct view *view;
	void *base;

	if (fd < 0 || ftruncate(fd, SIZE))
		return 1;
	base = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (base == MAP_FAILED)
		return 1;
	fill(base);
	view = view_new(fd, base, SIZE);
	if (!view)
		return 1;
	case_trim(view);
	case_reach(view);
	case_whole(view);
	free(view);
	munmap(base, SIZE);
	close(fd);
	return check_result();
}
