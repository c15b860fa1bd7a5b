/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every file of the daemon and the command wants: sizes of arrays, scoped
 * clean-up, handing a pointer or descriptor on.
 *
 * The clean-up attributes end what is still owned when the scope is left by any
 * path; TAKE_PTR() and TAKE_FD() take the ownership out of such a variable.
 */
#ifndef BASE_BASE_H
#define BASE_BASE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <dirent.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define MIN(a, b)                                                                                  \
	({                                                                                         \
		__typeof__(a) a_ = (a);                                                            \
		__typeof__(b) b_ = (b);                                                            \
		a_ < b_ ? a_ : b_;                                                                 \
	})
#define MAX(a, b)                                                                                  \
	({                                                                                         \
		__typeof__(a) a_ = (a);                                                            \
		__typeof__(b) b_ = (b);                                                            \
		a_ > b_ ? a_ : b_;                                                                 \
	})
#define container_of(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))
#define PRINTF(fmt, args)		__attribute__((format(printf, fmt, args)))

#define _cleanup_(f) __attribute__((cleanup(f)))

/* Defines `NAMEp()`, the form that _cleanup_() wants, of an ender that accepts NULL. */
#define DEFINE_CLEANUP(type, name)                                                                 \
	static inline void name##p(type *p)                                                        \
	{                                                                                          \
		name(*p);                                                                          \
	}

static inline void base_freep(void *p)
{
	free(*(void **)p);
}

static inline void base_fclosep(FILE **f)
{
	if (*f)
		fclose(*f);
}

static inline void base_closep(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

static inline void base_closedirp(DIR **d)
{
	if (*d)
		closedir(*d);
}

#define _cleanup_free_	   _cleanup_(base_freep)
#define _cleanup_fclose_   _cleanup_(base_fclosep)
#define _cleanup_close_	   _cleanup_(base_closep)
#define _cleanup_closedir_ _cleanup_(base_closedirp)

#define TAKE_PTR(p)                                                                                \
	({                                                                                         \
		__typeof__(p) *pp_ = &(p);                                                         \
		__typeof__(p) taken_ = *pp_;                                                       \
		*pp_ = NULL;                                                                       \
		taken_;                                                                            \
	})

#define TAKE_FD(fd)                                                                                \
	({                                                                                         \
		int *fdp_ = &(fd);                                                                 \
		int taken_ = *fdp_;                                                                \
		*fdp_ = -1;                                                                        \
		taken_;                                                                            \
	})

#endif
