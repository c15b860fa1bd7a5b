// SPDX-License-Identifier: Apache-2.0
// Texture and surface objects of every shape, against what the CPU reads of the same numbers.
#include <cmath>
#include "check.h"

static const int width = 12, height = 10, depth = 6;

static cudaTextureObject_t make_texture(cudaResourceDesc resource, cudaTextureAddressMode address,
					bool linear, bool normalized, bool as_float = false)
{
	cudaTextureDesc desc = {};
	cudaTextureObject_t texture;

	for (int i = 0; i < 3; i++)
		desc.addressMode[i] = address;
	desc.filterMode = linear ? cudaFilterModeLinear : cudaFilterModePoint;
	desc.readMode = as_float ? cudaReadModeNormalizedFloat : cudaReadModeElementType;
	desc.normalizedCoords = normalized;
	CHECK(cudaCreateTextureObject(&texture, &resource, &desc, nullptr));
	return texture;
}

static cudaResourceDesc of_array(cudaArray_t array)
{
	cudaResourceDesc resource = {};

	resource.resType = cudaResourceTypeArray;
	resource.res.array.array = array;
	return resource;
}

template <typename T> static cudaArray_t make_array(const std::vector<T> &host, cudaExtent extent, unsigned flags)
{
	cudaChannelFormatDesc format = cudaCreateChannelDesc<T>();
	cudaMemcpy3DParms copy = {};
	cudaArray_t array;

	CHECK(cudaMalloc3DArray(&array, &format, extent, flags));
	copy.srcPtr = make_cudaPitchedPtr((void *)host.data(), extent.width * sizeof(T), extent.width,
					  extent.height ? extent.height : 1);
	copy.dstArray = array;
	copy.extent = make_cudaExtent(extent.width, extent.height ? extent.height : 1, extent.depth ? extent.depth : 1);
	copy.kind = cudaMemcpyHostToDevice;
	CHECK(cudaMemcpy3D(&copy));
	return array;
}

static std::vector<float> numbers(int n)
{
	std::vector<float> v(n);

	for (int i = 0; i < n; i++)
		v[i] = float(i * 37 % 101);
	return v;
}

__global__ void read_2d(cudaTextureObject_t t, float *out, float scale, float shift)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y;

	out[j * gridDim.x * blockDim.x + i] = tex2D<float>(t, i * scale + shift, j * scale + shift);
}

// Bilinear, with wrapped coordinates from 0 to 1.
static void try_wrapped()
{
	std::vector<float> host = numbers(width * height);
	cudaArray_t array = make_array(host, make_cudaExtent(width, height, 0), 0);
	cudaTextureObject_t t = make_texture(of_array(array), cudaAddressModeWrap, true, true);
	float *out = to_device(std::vector<float>(64 * 64));

	read_2d<<<dim3(2, 64), 32>>>(t, out, 0.0371f, -0.7f);
	CHECK(cudaGetLastError());
	std::vector<float> got = to_host(out, 64 * 64);
	for (int n = 0; n < 64 * 64; n++) {
		float u = fmaf(float(n % 64), 0.0371f, -0.7f), v = fmaf(float(n / 64), 0.0371f, -0.7f);
		double x = double(u - std::floor(u)) * width - 0.5, y = double(v - std::floor(v)) * height - 0.5;
		int i = int(std::floor(x)), j = int(std::floor(y));
		double a = std::floor((x - i) * 256 + 0.5) / 256, b = std::floor((y - j) * 256 + 0.5) / 256;
		auto at = [&](int p, int q) {
			return double(host[(q + height) % height * width + (p + width) % width]);
		};
		double want = (1 - a) * (1 - b) * at(i, j) + a * (1 - b) * at(i + 1, j) +
			      (1 - a) * b * at(i, j + 1) + a * b * at(i + 1, j + 1);

		// Where the fraction falls between two of 256, either will do.
		EXPECT(std::fabs(got[n] - want) < 1);
	}
	CHECK(cudaDestroyTextureObject(t));
	CHECK(cudaFreeArray(array));
}

__global__ void read_bytes(cudaTextureObject_t t, float4 *out)
{
	out[threadIdx.x] = tex2D<float4>(t, threadIdx.x % 4 + 0.5f, threadIdx.x / 4 + 0.5f);
}

// Bytes as floats from 0 to 1.
static void try_bytes()
{
	std::vector<uchar4> host(16);

	for (int i = 0; i < 16; i++)
		host[i] = make_uchar4(i, 255 - i, 10 * i, 7);
	cudaArray_t array = make_array(host, make_cudaExtent(4, 4, 0), 0);
	cudaTextureObject_t t = make_texture(of_array(array), cudaAddressModeClamp, false, false, true);
	float4 *out = to_device(std::vector<float4>(16));

	read_bytes<<<1, 16>>>(t, out);
	std::vector<float4> got = to_host(out, 16);
	for (int i = 0; i < 16; i++)
		EXPECT(got[i].x == i / 255.0f && got[i].y == (255 - i) / 255.0f && got[i].z == 10 * i / 255.0f &&
		       got[i].w == 7 / 255.0f);
	CHECK(cudaDestroyTextureObject(t));
	CHECK(cudaFreeArray(array));
}

__global__ void fetch(cudaTextureObject_t t, int *out)
{
	out[threadIdx.x] = tex1Dfetch<int>(t, int(threadIdx.x) - 4);
}

// Plain memory: zero outside of it; and with a pitch.
static void try_memory()
{
	std::vector<int> host(64);
	cudaResourceDesc resource = {};

	for (int i = 0; i < 64; i++)
		host[i] = i * i - 50;
	int *memory = to_device(host), *out = to_device(std::vector<int>(128));
	resource.resType = cudaResourceTypeLinear;
	resource.res.linear.devPtr = memory;
	resource.res.linear.desc = cudaCreateChannelDesc<int>();
	resource.res.linear.sizeInBytes = 64 * sizeof(int);
	cudaTextureObject_t t = make_texture(resource, cudaAddressModeClamp, false, false);
	fetch<<<1, 128>>>(t, out);
	std::vector<int> got = to_host(out, 128);
	for (int i = 0; i < 128; i++)
		EXPECT(got[i] == (i >= 4 && i < 68 ? host[i - 4] : 0));
	cudaResourceDesc back;
	CHECK(cudaGetTextureObjectResourceDesc(&back, t));
	EXPECT(back.resType == cudaResourceTypeLinear && back.res.linear.devPtr == memory &&
	       back.res.linear.desc.x == 32 && back.res.linear.desc.f == cudaChannelFormatKindSigned);
	CHECK(cudaDestroyTextureObject(t));
	EXPECT_ERROR(cudaErrorInvalidValue, cudaDestroyTextureObject(t));

	void *rows;
	size_t pitch;
	std::vector<float> plane = numbers(width * height);
	CHECK(cudaMallocPitch(&rows, &pitch, width * sizeof(float), height));
	CHECK(cudaMemcpy2D(rows, pitch, plane.data(), width * sizeof(float), width * sizeof(float), height,
			   cudaMemcpyHostToDevice));
	resource = {};
	resource.resType = cudaResourceTypePitch2D;
	resource.res.pitch2D.devPtr = rows;
	resource.res.pitch2D.desc = cudaCreateChannelDesc<float>();
	resource.res.pitch2D.width = width;
	resource.res.pitch2D.height = height;
	resource.res.pitch2D.pitchInBytes = pitch;
	t = make_texture(resource, cudaAddressModeBorder, false, false);
	float *dots = to_device(std::vector<float>(32 * 16));
	read_2d<<<dim3(1, 16), 32>>>(t, dots, 1, 0.5f);
	std::vector<float> seen = to_host(dots, 32 * 16);
	for (int i = 0; i < 32 * 16; i++)
		EXPECT(seen[i] == (i % 32 < width && i / 32 < height ? plane[i / 32 * width + i % 32] : 0));
	CHECK(cudaDestroyTextureObject(t));
}

__global__ void read_volume(cudaTextureObject_t volume, cudaTextureObject_t layers, cudaTextureObject_t cube,
			    float *out)
{
	int x = threadIdx.x, y = threadIdx.y, z = blockIdx.x, i = (z * blockDim.y + y) * blockDim.x + x;

	out[3 * i] = tex3D<float>(volume, x + 0.5f, y + 0.5f, z + 0.5f);
	out[3 * i + 1] = tex2DLayered<float>(layers, x + 0.5f, y + 0.5f, z);
	// The middle of face z.
	float3 d = make_float3(z == 0 ? 1 : z == 1 ? -1 : 0, z == 2 ? 1 : z == 3 ? -1 : 0, z == 4 ? 1 : z == 5 ? -1 : 0);
	out[3 * i + 2] = texCubemap<float>(cube, d.x, d.y, d.z);
}

static void try_volumes()
{
	std::vector<float> host = numbers(width * height * depth), faces(6 * 9);
	for (int i = 0; i < 6 * 9; i++)
		faces[i] = float(i);
	cudaTextureObject_t volume = make_texture(
		of_array(make_array(host, make_cudaExtent(width, height, depth), 0)), cudaAddressModeClamp, true, false);
	cudaTextureObject_t layers = make_texture(
		of_array(make_array(host, make_cudaExtent(width, height, depth), cudaArrayLayered)),
		cudaAddressModeClamp, false, false);
	cudaTextureObject_t cube = make_texture(
		of_array(make_array(faces, make_cudaExtent(3, 3, 6), cudaArrayCubemap)), cudaAddressModeClamp, false, true);
	float *out = to_device(std::vector<float>(3 * width * height * depth));

	read_volume<<<depth, dim3(width, height)>>>(volume, layers, cube, out);
	CHECK(cudaGetLastError());
	std::vector<float> got = to_host(out, 3 * width * height * depth);
	for (int i = 0; i < width * height * depth; i++)
		EXPECT(got[3 * i] == host[i] && got[3 * i + 1] == host[i] &&
		       got[3 * i + 2] == float(i / (width * height) * 9 + 4));
}

__global__ void turn(cudaSurfaceObject_t from, cudaSurfaceObject_t to, int n)
{
	int x = threadIdx.x, y = blockIdx.x;
	float v = surf2Dread<float>(from, x * int(sizeof(float)), y);

	surf2Dwrite(v + 1000, to, y * int(sizeof(float)), x);
	// Outside of it nothing is written.
	surf2Dwrite(v, to, (y + n) * int(sizeof(float)), x, cudaBoundaryModeZero);
}

static void try_surfaces()
{
	std::vector<float> host = numbers(height * height);
	cudaExtent extent = make_cudaExtent(height, height, 0);
	cudaArray_t from = make_array(host, extent, cudaArraySurfaceLoadStore);
	cudaArray_t to = make_array(host, extent, cudaArraySurfaceLoadStore);
	cudaArray_t plain = make_array(host, extent, 0);
	cudaResourceDesc from_desc = of_array(from), to_desc = of_array(to), plain_desc = of_array(plain);
	cudaSurfaceObject_t a, b, none;
	std::vector<float> got(height * height);

	EXPECT_ERROR(cudaErrorInvalidValue, cudaCreateSurfaceObject(&none, &plain_desc));
	CHECK(cudaCreateSurfaceObject(&a, &from_desc));
	CHECK(cudaCreateSurfaceObject(&b, &to_desc));
	turn<<<height, height>>>(a, b, height);
	CHECK(cudaGetLastError());
	CHECK(cudaMemcpy2DFromArray(got.data(), height * sizeof(float), to, 0, 0, height * sizeof(float), height,
				    cudaMemcpyDeviceToHost));
	for (int i = 0; i < height * height; i++)
		EXPECT(got[i] == host[i % height * height + i / height] + 1000);
	CHECK(cudaDestroySurfaceObject(a));
	CHECK(cudaDestroySurfaceObject(b));
}

__global__ void read_levels(cudaTextureObject_t t, float *out)
{
	out[threadIdx.x] = tex2DLod<float>(t, 0.5f, 0.5f, threadIdx.x * 0.25f);
}

// Levels that are 0, 100 and 200 everywhere, and what lies between them.
static void try_levels()
{
	cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
	cudaMipmappedArray_t mipmap;
	cudaResourceDesc resource = {};
	cudaTextureDesc desc = {};
	cudaTextureObject_t t;

	CHECK(cudaMallocMipmappedArray(&mipmap, &format, make_cudaExtent(8, 8, 0), 3));
	for (unsigned l = 0; l < 3; l++) {
		std::vector<float> flat((8 >> l) * (8 >> l), float(100 * l));
		cudaArray_t level;

		CHECK(cudaGetMipmappedArrayLevel(&level, mipmap, l));
		CHECK(cudaMemcpy2DToArray(level, 0, 0, flat.data(), (8 >> l) * sizeof(float), (8 >> l) * sizeof(float),
					  8 >> l, cudaMemcpyHostToDevice));
	}
	resource.resType = cudaResourceTypeMipmappedArray;
	resource.res.mipmap.mipmap = mipmap;
	desc.normalizedCoords = 1;
	desc.filterMode = cudaFilterModeLinear;
	desc.mipmapFilterMode = cudaFilterModeLinear;
	desc.maxMipmapLevelClamp = 1.5f;
	CHECK(cudaCreateTextureObject(&t, &resource, &desc, nullptr));
	float *out = to_device(std::vector<float>(16));
	read_levels<<<1, 16>>>(t, out);
	std::vector<float> got = to_host(out, 16);
	for (int i = 0; i < 16; i++)
		EXPECT(got[i] == std::min(i * 25.0f, 150.0f));
	CHECK(cudaDestroyTextureObject(t));
	CHECK(cudaFreeMipmappedArray(mipmap));
}

int main()
{
	try_wrapped();
	try_bytes();
	try_memory();
	try_volumes();
	try_surfaces();
	try_levels();
	printf("textures right\n");
	return 0;
}
