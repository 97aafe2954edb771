/* Inner loops, compiled where there is a compiler; NumPy does the same elsewhere.
 *
 * What every kernel keeps to:
 *
 * - Each has a reference in NumPy, and equals it within rounding. Tests compare them.
 * - Rows are independent: a row has the same bits alone and in any block.
 * - No call of libm, no fused multiply-add, no flag of one processor: the results are
 *   the same on every machine.
 * - Nothing is allocated, and nothing is kept: arrays and scratch come from NumPy, in
 *   C order. `kernels.py` declares each signature, and checks types and order.
 * - No header of Python: one library serves all versions of it.
 */

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(_WIN32)
#define EXPORT __declspec(dllexport)
#else
#define EXPORT __attribute__((visibility("default")))
#endif

typedef ptrdiff_t index; /* intp of NumPy */

/* The digest of this file, so that a library of another version is not called. */
#define TEXT_OF(x) #x
#define AS_TEXT(x) TEXT_OF(x)
EXPORT const char *propopt_source(void) { return AS_TEXT(PROPOPT_SOURCE); }

/* ---- Sums of products: sum_l v_l prod_u P_u, and contrasts in each column */

/* For n rows: total (n) += the sums, contrast (D, n) += sum_l v_l R_u prod_{w != u} P_w
 * at the column of each factor u. P and R are (U, n). Each of the L paths has at most K
 * factors, with -1 behind them. Scratch: pull (U, n), which comes as zeros, and
 * front (K + 1, n). */
EXPORT void propopt_contrasts(index L, index K, index U, index n, const double *value,
                              const index *paths, const index *column, const double *P,
                              const double *R, double *total, double *contrast,
                              double *pull, double *front) {
  for (index l = 0; l < L; l++) {
    const index *path = paths + l * K;
    index length = 0;
    for (index r = 0; r < n; r++) front[r] = value[l];
    for (; length < K && path[length] >= 0; length++) {
      const double *own = P + path[length] * n, *so_far = front + length * n;
      double *next = front + (length + 1) * n;
      for (index r = 0; r < n; r++) next[r] = so_far[r] * own[r];
    }
    double *behind = front + length * n; /* the product, then what is behind a factor */
    for (index r = 0; r < n; r++) {
      total[r] += behind[r];
      behind[r] = 1.0;
    }
    for (index k = length - 1; k >= 0; k--) {
      const double *own = P + path[k] * n, *before = front + k * n;
      double *out = pull + path[k] * n;
      for (index r = 0; r < n; r++) {
        out[r] += before[r] * behind[r];
        behind[r] *= own[r];
      }
    }
  }
  for (index u = 0; u < U; u++) {
    double *out = contrast + column[u] * n;
    for (index r = 0; r < n; r++) out[r] += pull[u * n + r] * R[u * n + r];
  }
}
