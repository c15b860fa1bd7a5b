// SPDX-License-Identifier: Apache-2.0
#include "softgpu/state/value.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

struct unit {
	const char *name;
	uint64_t factor;
};

/* Reads digits; false if there is none or the number leaves 64 bits. */
static bool digits_read(const char **text, uint64_t *ret)
{
	const char *p = *text;
	uint64_t n = 0;

	if (!isdigit((unsigned char)*p))
		return false;
	for (; isdigit((unsigned char)*p); p++) {
		if (__builtin_mul_overflow(n, (uint64_t)10, &n) ||
		    __builtin_add_overflow(n, (uint64_t)(*p - '0'), &n))
			return false;
	}
	*text = p;
	*ret = n;
	return true;
}

bool value_number(const char *text, uint64_t min, uint64_t max, uint64_t *ret)
{
	uint64_t n;

	if (!digits_read(&text, &n) || *text || n < min || n > max)
		return false;
	*ret = n;
	return true;
}

/* "1.5" of 1024 is 1536: the digits after the point, as parts of @factor. */
static bool fraction_read(const char **text, uint64_t *ret_digits, uint64_t *ret_scale)
{
	const char *begin;

	*ret_digits = 0;
	*ret_scale = 1;
	if (**text != '.')
		return true;
	begin = ++*text;
	if (!digits_read(text, ret_digits) || *text - begin > 6)
		return false;
	for (; begin < *text; begin++)
		*ret_scale *= 10;
	return true;
}

static bool quantity_read(const char *text, const struct unit *units, uint64_t *ret)
{
	uint64_t whole, digits, scale, n;

	if (!digits_read(&text, &whole) || !fraction_read(&text, &digits, &scale))
		return false;
	for (; units->name; units++) {
		if (strcasecmp(text, units->name) != 0)
			continue;
		/* Six digits times 2^40 is below 2^60. */
		if (__builtin_mul_overflow(whole, units->factor, &n) ||
		    __builtin_add_overflow(n, digits * units->factor / scale, &n))
			return false;
		*ret = n;
		return true;
	}
	return false;
}

bool value_size(const char *text, uint64_t *ret_bytes)
{
	static const struct unit units[] = {
		{ "", 1 },
		{ "B", 1 },
		{ "K", 1ull << 10 },
		{ "KB", 1ull << 10 },
		{ "KiB", 1ull << 10 },
		{ "M", 1ull << 20 },
		{ "MB", 1ull << 20 },
		{ "MiB", 1ull << 20 },
		{ "G", 1ull << 30 },
		{ "GB", 1ull << 30 },
		{ "GiB", 1ull << 30 },
		{ "T", 1ull << 40 },
		{ "TB", 1ull << 40 },
		{ "TiB", 1ull << 40 },
		{ 0 },
	};

	return quantity_read(text, units, ret_bytes);
}

bool value_time(const char *text, uint64_t *ret_ns)
{
	static const struct unit units[] = {
		{ "", 1 },	   { "ns", 1 },		{ "us", 1000 },
		{ "ms", 1000000 }, { "s", 1000000000 }, { 0 },
	};

	return quantity_read(text, units, ret_ns);
}

bool value_version(const char *text, uint32_t *ret_major, uint32_t *ret_minor)
{
	uint64_t major, minor;

	if (!digits_read(&text, &major) || *text++ != '.' || !digits_read(&text, &minor) || *text)
		return false;
	if (major > 999 || minor > 999)
		return false;
	*ret_major = (uint32_t)major;
	*ret_minor = (uint32_t)minor;
	return true;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)tolower((unsigned char)c);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool value_uuid(const char *text, uint8_t ret[16])
{
	static const char shape[] = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
	uint8_t uuid[16] = { 0 };
	unsigned n = 0;

	if (strncasecmp(text, "GPU-", 4) == 0)
		text += 4;
	if (strlen(text) != strlen(shape))
		return false;
	for (size_t i = 0; shape[i]; i++) {
		if (shape[i] == '-') {
			if (text[i] != '-')
				return false;
			continue;
		}
		if (hex_digit(text[i]) < 0)
			return false;
		uuid[n / 2] = (uint8_t)(uuid[n / 2] << 4 | hex_digit(text[i]));
		n++;
	}
	memcpy(ret, uuid, sizeof(uuid));
	return true;
}

/* Reads hexadecimal digits, at least one and at most @n_max, up to @end. */
static bool hex_read(const char **text, unsigned n_max, char end, uint32_t *ret)
{
	const char *p = *text;
	uint32_t n = 0;

	for (; hex_digit(*p) >= 0; p++) {
		if ((size_t)(p - *text) == n_max)
			return false;
		n = n << 4 | (uint32_t)hex_digit(*p);
	}
	if (p == *text || *p != end)
		return false;
	*text = p + (end != '\0');
	*ret = n;
	return true;
}

bool value_pci(const char *text, uint32_t *ret_domain, uint32_t *ret_bus, uint32_t *ret_device)
{
	uint32_t domain = 0, bus, device, function;
	const char *colon = strchr(text, ':');

	if (!colon)
		return false;
	if (strchr(colon + 1, ':') && !hex_read(&text, 8, ':', &domain))
		return false;
	if (!hex_read(&text, 2, ':', &bus) || !hex_read(&text, 2, '.', &device) ||
	    !hex_read(&text, 1, '\0', &function))
		return false;
	if (device > 31 || function != 0)
		return false;
	*ret_domain = domain;
	*ret_bus = bus;
	*ret_device = device;
	return true;
}
