/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vprintf of kernels.
 *
 * The format and the strings are read from the thread's memory byte by byte,
 * checked like any load. Each conversion is handed to snprintf() on its own,
 * after a look at what it is: nothing of a kernel's is ever a host format as
 * a whole.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "softgpu/exec/access.h"

/* What one launch may have printed and not yet handed over; hardware's buffer is as large. */
#define PRINT_MAX_BYTES (1u << 20)

/* What one call prints at most. */
#define PRINT_LINE_MAX 4096

static void buffer_add(struct exec_launch *launch, const char *text, size_t len)
{
	struct print_buffer *b = &launch->printed;

	pthread_mutex_lock(&b->lock);
	if (b->len + len > b->size) {
		size_t size = (b->len + len) * 2;
		char *grown = size <= 2 * PRINT_MAX_BYTES ? realloc(b->text, size) : NULL;

		if (!grown) {
			pthread_mutex_unlock(&b->lock);
			return;
		}
		b->text = grown;
		b->size = size;
	}
	memcpy(b->text + b->len, text, len);
	b->len += len;
	pthread_mutex_unlock(&b->lock);
}

void print_add(struct exec_launch *launch, const char *format, ...)
{
	char text[512];
	va_list ap;
	int n;

	va_start(ap, format);
	n = vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	if (n > 0)
		buffer_add(launch, text, (size_t)n < sizeof(text) ? (size_t)n : sizeof(text) - 1);
}

void print_flush(struct exec_launch *launch)
{
	struct print_buffer *b = &launch->printed;

	if (b->len && launch->print)
		launch->print(launch->print_arg, b->text, b->len);
	b->len = 0;
}

static u8 read_byte(struct warp *w, u32 lane, u64 addr)
{
	return *access_lane(w, addr, lane, 1, /* write= */ false);
}

void print_string(struct warp *w, u32 lane, u64 addr, char *ret, u32 size)
{
	u32 n = 0;

	while (n + 1 < size) {
		char c = (char)read_byte(w, lane, addr + n);

		if (!c)
			break;
		ret[n++] = c;
	}
	ret[n] = '\0';
}

/* The arguments as the caller has laid them out: each at a multiple of its size. */
struct arguments {
	struct warp *w;
	u32 lane;
	u64 at;
};

static u64 next_argument(struct arguments *a, u32 size)
{
	u64 v = 0;

	a->at = (a->at + size - 1) & ~(u64)(size - 1);
	memcpy(&v, access_lane(a->w, a->at, a->lane, size, /* write= */ false), size);
	a->at += size;
	return v;
}

/* A conversion: flags, width and precision as in the text, then what kind it is. */
struct conversion {
	char spec[24]; /* "%-8.3", to be completed */
	u32 len;
	bool wide; /* l, ll, j, z or t: 64 bits */
	char kind;
};

static void spec_add(struct conversion *c, char ch)
{
	if (c->len < 12)
		c->spec[c->len++] = ch;
}

/*
 * A star stands for an argument: it is written out. Beyond what one printf() of a kernel may
 * print all numbers are alike; a precision below 0 is none.
 */
static void spec_add_argument(struct conversion *c, struct arguments *args)
{
	s32 v = (s32)next_argument(args, 4);
	char digits[8];

	if (c->spec[c->len - 1] == '.' && v < 0) {
		c->len--;
		return;
	}
	v = v > PRINT_LINE_MAX ? PRINT_LINE_MAX : v < -PRINT_LINE_MAX ? -PRINT_LINE_MAX : v;
	snprintf(digits, sizeof(digits), "%d", v);
	for (const char *digit = digits; *digit; digit++)
		spec_add(c, *digit);
}

/* Reads from behind "%" on; the length of what was read. */
static u32 read_conversion(struct arguments *args, u64 addr, struct conversion *c)
{
	u32 n = 0;
	char ch;

	c->spec[0] = '%';
	c->len = 1;
	c->wide = false;
	for (;;) {
		ch = (char)read_byte(args->w, args->lane, addr + n);
		if (!ch)
			break;
		n++;
		if (ch == '*')
			spec_add_argument(c, args);
		else if (strchr("-+ #0123456789.", ch))
			spec_add(c, ch);
		else if (strchr("ljzt", ch))
			c->wide = true;
		else if (ch != 'h')
			break;
	}
	c->kind = ch;
	return n;
}

static int format_integer(struct conversion *c, struct arguments *args, char *text, size_t size)
{
	bool is_signed = c->kind == 'd' || c->kind == 'i';
	u64 v = next_argument(args, c->wide ? 8 : 4);

	if (!c->wide && is_signed)
		v = (u64)(s64)(s32)v;
	snprintf(c->spec + c->len, sizeof(c->spec) - c->len, "ll%c", c->kind);
	return snprintf(text, size, c->spec, v);
}

static int format_double(struct conversion *c, struct arguments *args, char *text, size_t size)
{
	u64 bits = next_argument(args, 8);
	f64 v;

	memcpy(&v, &bits, sizeof(v));
	snprintf(c->spec + c->len, sizeof(c->spec) - c->len, "%c", c->kind);
	return snprintf(text, size, c->spec, v);
}

/* One conversion; -1 if it is none: then it is printed as it stands. */
static int format_one(struct conversion *c, struct arguments *args, char *text, size_t size)
{
	char string[1024];

	if (c->kind && strchr("diouxX", c->kind))
		return format_integer(c, args, text, size);
	if (c->kind && strchr("eEfFgGaA", c->kind))
		return format_double(c, args, text, size);
	switch (c->kind) {
	case 'c':
		strcpy(c->spec + c->len, "c");
		return snprintf(text, size, c->spec, (int)next_argument(args, 4));
	case 'p':
		return snprintf(text, size, "0x%llx", (unsigned long long)next_argument(args, 8));
	case 's':
		print_string(args->w, args->lane, next_argument(args, 8), string, sizeof(string));
		strcpy(c->spec + c->len, "s");
		return snprintf(text, size, c->spec, string);
	case '%':
		return snprintf(text, size, "%%");
	default:
		return -1;
	}
}

u32 print_format(struct warp *w, u32 lane, u64 format, u64 at)
{
	struct arguments args = { .w = w, .lane = lane, .at = at };
	char text[PRINT_LINE_MAX];
	size_t len = 0;
	u32 n = 0;

	/* Hardware prints a thread's line in one piece; so does this, up to the buffer's size. */
	while (len + 1 < sizeof(text)) {
		struct conversion c;
		char ch = (char)read_byte(w, lane, format++);
		int used;

		if (!ch)
			break;
		if (ch != '%') {
			text[len++] = ch;
			continue;
		}
		format += read_conversion(&args, format, &c);
		used = format_one(&c, &args, text + len, sizeof(text) - len);
		if (used > 0)
			len += (size_t)used < sizeof(text) - len ? (size_t)used
								 : sizeof(text) - len - 1;
		n += used >= 0 && c.kind != '%';
	}
	buffer_add(w->block->launch, text, len);
	return n;
}
