/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What bench-jit's kernels do, as one writes it for one thread of a CPU.
 */
#include <math.h>
#include <string.h>

#include "softgpu/jit/bench-kernels.h"

#define TILE 32

void plain_saxpy(const float *x, float *y, float a, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		y[i] = a * x[i] + y[i];
}

static void tile_product(const float *a, const float *b, float *c, uint32_t n)
{
	for (uint32_t i = 0; i < TILE; i++) {
		for (uint32_t j = 0; j < TILE; j++) {
			float sum = c[i * n + j];

			for (uint32_t k = 0; k < TILE; k++)
				sum += a[i * n + k] * b[k * n + j];
			c[i * n + j] = sum;
		}
	}
}

void plain_matmul(const float *a, const float *b, float *c, uint32_t n, uint32_t first,
		  uint32_t end)
{
	memset(c + (size_t)first * n, 0, (size_t)(end - first) * n * sizeof(*c));
	for (uint32_t i = first; i < end; i += TILE) {
		for (uint32_t j = 0; j < n; j += TILE) {
			for (uint32_t k = 0; k < n; k += TILE)
				tile_product(a + i * n + k, b + k * n + j, c + i * n + j, n);
		}
	}
}

float plain_sum(const float *x, uint32_t n)
{
	float sum = 0;

	for (uint32_t i = 0; i < n; i++)
		sum += x[i];
	return sum;
}

void plain_histogram(const uint8_t *data, uint32_t *bins, uint32_t n)
{
	memset(bins, 0, 256 * sizeof(*bins));
	for (uint32_t i = 0; i < n; i++)
		bins[data[i]]++;
}

/* Three coordinates and a mass each. */
void plain_bodies(const double *place, double *force, uint32_t n, uint32_t first, uint32_t end)
{
	for (uint32_t i = first; i < end; i++) {
		const double *p = place + 4 * i;
		double fx = 0, fy = 0, fz = 0;

		for (uint32_t k = 0; k < n; k++) {
			const double *q = place + 4 * k;
			double dx = q[0] - p[0], dy = q[1] - p[1], dz = q[2] - p[2];
			double square = dx * dx + dy * dy + dz * dz + 1e-3, distance = sqrt(square);
			double weight = q[3] / (square * distance);

			fx += dx * weight;
			fy += dy * weight;
			fz += dz * weight;
		}
		force[4 * i] = fx;
		force[4 * i + 1] = fy;
		force[4 * i + 2] = fz;
	}
}

/* The normal distribution by a polynomial of the fifth degree. */
static float normal(float d)
{
	float k = 1 / (1 + 0.2316419f * fabsf(d));
	float p = k *
		  (0.31938153f + k * (-0.356563782f +
				      k * (1.781477937f + k * (-1.821255978f + k * 1.330274429f))));
	float tail = 0.39894228f * expf(-0.5f * d * d) * p;

	return d > 0 ? 1 - tail : tail;
}

void plain_options(const float *price, const float *strike, const float *years, float *call,
		   float *put, uint32_t n)
{
	const float rate = 0.02f, volatility = 0.3f;

	for (uint32_t i = 0; i < n; i++) {
		float root = sqrtf(years[i]);
		float d1 = (logf(price[i] / strike[i]) +
			    (rate + 0.5f * volatility * volatility) * years[i]) /
			   (volatility * root);
		float d2 = d1 - volatility * root, today = strike[i] * expf(-rate * years[i]);
		float n1 = normal(d1), n2 = normal(d2);

		call[i] = price[i] * n1 - today * n2;
		put[i] = today * (1 - n2) - price[i] * (1 - n1);
	}
}

void plain_stencil(const float *in, float *out, uint32_t n, uint32_t first, uint32_t end)
{
	first = first ? first : 1;
	end = end < n ? end : n - 1;
	for (uint32_t y = first; y < end; y++) {
		for (uint32_t x = 1; x < n - 1; x++) {
			const float *p = in + y * n + x;

			out[y * n + x] = 0.5f * p[0] + 0.125f * (p[-1] + p[1] + p[-(int)n] + p[n]);
		}
	}
}
