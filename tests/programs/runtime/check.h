// SPDX-License-Identifier: Apache-2.0
// What the runtime programs share: each is an ordinary CUDA program that compares what the
// device computed with the CPU's own result, prints one line and exits with 0.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <vector>
#include <cuda_runtime.h>

#define CHECK(call)                                                                                \
	do {                                                                                       \
		cudaError_t check_error = (call);                                                  \
		if (check_error != cudaSuccess) {                                                  \
			fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call,              \
				cudaGetErrorName(check_error));                                    \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

#define EXPECT(what)                                                                               \
	do {                                                                                       \
		if (!(what)) {                                                                     \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #what);         \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

#define EXPECT_ERROR(error, call) EXPECT((call) == (error) && cudaGetLastError() == (error))

template <typename T> static T *to_device(const std::vector<T> &host)
{
	T *ptr;

	CHECK(cudaMalloc(&ptr, host.size() * sizeof(T)));
	CHECK(cudaMemcpy(ptr, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice));
	return ptr;
}

template <typename T> static std::vector<T> to_host(const T *ptr, size_t n)
{
	std::vector<T> host(n);

	CHECK(cudaMemcpy(host.data(), ptr, n * sizeof(T), cudaMemcpyDeviceToHost));
	return host;
}
