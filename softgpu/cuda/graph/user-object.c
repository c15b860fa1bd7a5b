// SPDX-License-Identifier: Apache-2.0
/*
 * User objects: things of the program, counted, which a function of the program destroys with the
 * last reference. Graphs hold references for what their nodes use.
 */
#include <limits.h>
#include <stdlib.h>

#include "softgpu/cuda/graph/graph.h"

/**
 * struct user_object - a thing of the program
 * @n_references:	all that there are
 * @n_owned:	of them the program's own: it cannot give away what graphs have
 */
struct user_object {
	CUuserObject handle;
	void *thing;
	CUhostFn destroy;
	_Atomic uint64_t n_references, n_owned;
};

struct user_reference {
	struct user_reference *next;
	struct user_object *object;
	uint64_t n;
};

static CUresult object_find(CUuserObject handle, unsigned int n, struct user_object **ret)
{
	struct user_object *object;
	CUresult r = driver_check();

	if (r != CUDA_SUCCESS)
		return r;
	object = handle_get(HANDLE_USER_OBJECT, handle);
	if (!object || n == 0 || n > INT_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	*ret = object;
	return CUDA_SUCCESS;
}

static bool owned_take(struct user_object *object, uint64_t n)
{
	uint64_t owned = atomic_load(&object->n_owned);

	do {
		if (owned < n)
			return false;
	} while (!atomic_compare_exchange_weak(&object->n_owned, &owned, owned - n));
	return true;
}

static void object_release(struct user_object *object, uint64_t n)
{
	if (atomic_fetch_sub(&object->n_references, n) > n)
		return;
	handle_remove(HANDLE_USER_OBJECT, object->handle);
	object->destroy(object->thing);
	free(object);
}

static CUresult reference_add(struct user_reference **first, struct user_object *object, uint64_t n)
{
	struct user_reference *reference;

	for (reference = *first; reference; reference = reference->next) {
		if (reference->object == object) {
			reference->n += n;
			return CUDA_SUCCESS;
		}
	}
	reference = calloc(1, sizeof(*reference));
	if (!reference)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*reference = (struct user_reference){ *first, object, n };
	*first = reference;
	return CUDA_SUCCESS;
}

CUresult user_references_copy(struct user_reference *from, struct user_reference **ret)
{
	CUresult r = CUDA_SUCCESS;

	*ret = NULL;
	for (; from && r == CUDA_SUCCESS; from = from->next) {
		r = reference_add(ret, from->object, from->n);
		if (r == CUDA_SUCCESS)
			atomic_fetch_add(&from->object->n_references, from->n);
	}
	if (r != CUDA_SUCCESS) {
		user_references_free(*ret);
		*ret = NULL;
	}
	return r;
}

void user_references_free(struct user_reference *first)
{
	struct user_reference *next;

	for (; first; first = next) {
		next = first->next;
		object_release(first->object, first->n);
		free(first);
	}
}

CALL(cuUserObjectCreate, CUuserObject *ret, void *thing, CUhostFn destroy, unsigned int n,
     unsigned int flags)
{
	struct user_object *object;
	CUresult r = driver_check();

	if (r != CUDA_SUCCESS)
		return r;
	if (!ret || !destroy || n == 0 || n > INT_MAX || flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC)
		return CUDA_ERROR_INVALID_VALUE;
	object = calloc(1, sizeof(*object));
	if (!object)
		return CUDA_ERROR_OUT_OF_MEMORY;
	object->thing = thing;
	object->destroy = destroy;
	object->n_references = object->n_owned = n;
	object->handle = handle_new(CUuserObject, HANDLE_USER_OBJECT, object);
	if (!object->handle) {
		free(object);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*ret = object->handle;
	return CUDA_SUCCESS;
}

CALL(cuUserObjectRetain, CUuserObject handle, unsigned int n)
{
	struct user_object *object;
	CUresult r = object_find(handle, n, &object);

	if (r != CUDA_SUCCESS)
		return r;
	atomic_fetch_add(&object->n_references, n);
	atomic_fetch_add(&object->n_owned, n);
	return CUDA_SUCCESS;
}

CALL(cuUserObjectRelease, CUuserObject handle, unsigned int n)
{
	struct user_object *object;
	CUresult r = object_find(handle, n, &object);

	if (r != CUDA_SUCCESS)
		return r;
	if (!owned_take(object, n))
		return CUDA_ERROR_INVALID_VALUE;
	object_release(object, n);
	return CUDA_SUCCESS;
}

CALL(cuGraphRetainUserObject, CUgraph graph_handle, CUuserObject handle, unsigned int n,
     unsigned int flags)
{
	struct user_object *object;
	struct graph *graph;
	CUresult r = graph_find(graph_handle, &graph);

	if (r == CUDA_SUCCESS)
		r = object_find(handle, n, &object);
	if (r != CUDA_SUCCESS)
		return r;
	if (flags & ~(unsigned int)CU_GRAPH_USER_OBJECT_MOVE)
		return CUDA_ERROR_INVALID_VALUE;
	/* Moving hands the caller's references over, else the graph has its own. */
	if (!(flags & CU_GRAPH_USER_OBJECT_MOVE))
		atomic_fetch_add(&object->n_references, n);
	else if (!owned_take(object, n))
		return CUDA_ERROR_INVALID_VALUE;
	r = reference_add(&graph->user_references, object, n);
	if (r != CUDA_SUCCESS && flags & CU_GRAPH_USER_OBJECT_MOVE)
		atomic_fetch_add(&object->n_owned, n);
	else if (r != CUDA_SUCCESS)
		object_release(object, n);
	return r;
}

CALL(cuGraphReleaseUserObject, CUgraph graph_handle, CUuserObject handle, unsigned int n)
{
	struct user_reference **at, *reference;
	struct user_object *object;
	struct graph *graph;
	CUresult r = graph_find(graph_handle, &graph);

	if (r == CUDA_SUCCESS)
		r = object_find(handle, n, &object);
	if (r != CUDA_SUCCESS)
		return r;
	for (at = &graph->user_references; *at; at = &(*at)->next)
		if ((*at)->object == object)
			break;
	reference = *at;
	if (!reference || reference->n < n)
		return CUDA_ERROR_INVALID_VALUE;
	reference->n -= n;
	if (reference->n == 0) {
		*at = reference->next;
		free(reference);
	}
	object_release(object, n);
	return CUDA_SUCCESS;
}
