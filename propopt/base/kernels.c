/* Inner loops, compiled where there is a compiler; NumPy does the same elsewhere. Kernels:
 *
 * - Each equals a reference in NumPy within rounding; tests compare them.
 * - Rows are independent: a row has the same bits alone and in any block.
 * - No call of libm, no fused multiply-add, no flag of one processor: results are the same on every machine.
 * - Nothing is allocated or kept: arrays and scratch come from NumPy, in C order. `kernels.py` declares
 *   signatures, and checks types and order.
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

#define TEXT_OF(x) #x
#define AS_TEXT(x) TEXT_OF(x)
/* The digest of this file, so that a library of another version is not called. */
EXPORT const char *propopt_source(void) { return AS_TEXT(PROPOPT_SOURCE); }

/* ---- Sums of products: sum_l v_l prod_u P_u, and contrasts in each column */

static inline void contrasts(index L, index K, index U, index n, const double *value, const index *paths,
                             const index *column, const double *P, const double *R, double *total,
                             double *contrast, double *pull, double *front) {
  for (index l = 0; l < L; l++) {
    const index *path = paths + l * K;
    index length = 0;
    for (index r = 0; r < n; r++) front[r] = value[l];
    for (; length < K && path[length] >= 0; length++) {
      const double *own = P + path[length] * n, *so_far = front + length * n;
      for (index r = 0; r < n; r++) front[(length + 1) * n + r] = so_far[r] * own[r];
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
  for (index u = 0; u < U; u++)
    for (index r = 0; r < n; r++) contrast[column[u] * n + r] += pull[u * n + r] * R[u * n + r];
}

/* For n rows: total (n) += the sums, contrast (D, n) += sum_l v_l R_u prod_{w != u} P_w at the column of each
 * factor u. P and R are (U, n). Each of the L paths has at most K factors, with -1 behind them. Scratch: pull
 * (U, n), which comes as zeros, and front (K + 1, n). */
EXPORT void propopt_contrasts(index L, index K, index U, index n, const double *value, const index *paths,
                              const index *column, const double *P, const double *R, double *total,
                              double *contrast, double *pull, double *front) {
  if (n == 1) /* by itself, so that loops over rows vanish */
    contrasts(L, K, U, 1, value, paths, column, P, R, total, contrast, pull, front);
  else contrasts(L, K, U, n, value, paths, column, P, R, total, contrast, pull, front);
}

/* ---- The law of columns of numbers by tables of cumulative moments (panels.py) */

#define PAIRS 4 /* of cuts, which stay in registers */
#define LANE (2 * PAIRS)
typedef double pair __attribute__((vector_size(16)));

/* Means P and contrasts R (U, n) of the sets of C columns at n places. place (C, n) is the panel of each, -1
 * where it has no table and nothing is written; shift (C, n) is d. Column c has n_cuts[c] cuts, and tables
 * (panels, degree + 1, cuts rounded up to LANE) from offset[c] in moments. It has the sets first[c] to
 * first[c + 1]: factor is their number among U, start and stop are their ends among the cuts. Scratch: two
 * rows of the most cuts, rounded up. */
EXPORT void propopt_panels(index C, index n, index degree, const index *place, const double *shift,
                           const double *moments, const index *offset, const index *n_cuts,
                           const double *width, const index *first, const index *factor, const index *start,
                           const index *stop, double *P, double *R, double *scratch) {
  for (index c = 0; c < C; c++) {
    index last = n_cuts[c] - 1, stride = (last + LANE) / LANE * LANE;
    double *law = scratch, *contrast = scratch + stride;
    for (index r = 0; r < n; r++) {
      if (place[c * n + r] < 0) continue;
      double d = shift[c * n + r];
      const double *table = moments + offset[c] + place[c * n + r] * (degree + 1) * stride;
      double mass = table[degree * stride + last], first_moment = 0.0, half_second = 0.0;
      for (index q = degree - 1; q >= 0; q--) {
        half_second = half_second * d + first_moment;
        first_moment = first_moment * d + mass;
        mass = mass * d + table[q * stride + last];
      }
      double mean = first_moment / mass, by_mass = 1.0 / mass;
      double by_spread = 1.0 / ((2.0 * half_second - mean * first_moment) * width[c]);
      for (index k = 0; k < stride; k += LANE) {
        pair sum[PAIRS], moment[PAIRS] = {{0.0}}, next[PAIRS];
        memcpy(sum, table + degree * stride + k, sizeof sum);
        for (index q = degree - 1; q >= 0; q--) { /* Horner, with derivatives */
          memcpy(next, table + q * stride + k, sizeof next);
          for (int i = 0; i < PAIRS; i++) {
            moment[i] = moment[i] * d + sum[i];
            sum[i] = sum[i] * d + next[i];
          }
        }
        for (int i = 0; i < PAIRS; i++) {
          moment[i] = (moment[i] - mean * sum[i]) * by_spread;
          sum[i] *= by_mass;
        }
        memcpy(law + k, sum, sizeof sum);
        memcpy(contrast + k, moment, sizeof moment);
      }
      law[last] = 1.0;
      contrast[last] = 0.0; /* contrasts add up to 0 */
      for (index u = first[c]; u < first[c + 1]; u++) {
        P[factor[u] * n + r] = law[stop[u]] - law[start[u]];
        R[factor[u] * n + r] = contrast[stop[u]] - contrast[start[u]];
      }
    }
  }
}

/* ---- Shapley values of boxes: structures/boxes/shapley.py says what is computed */

enum { TABLE_SETS = 18, MOST_SETS = 62, GAINS = MOST_SETS + 2 };

/* Numbers for s = 0 to p beside each other, in whole registers. */
static inline index lanes_of(index p) { return p < 16 ? 16 : 24; }

static inline int bits_of(uint64_t x) {
  x -= x >> 1 & 0x5555555555555555u;
  x = (x & 0x3333333333333333u) + (x >> 2 & 0x3333333333333333u);
  x = (x + (x >> 4)) & 0x0f0f0f0f0f0f0f0fu;
  return (int)(x * 0x0101010101010101u >> 56);
}

/* Eight bits as eight bytes of 0 or 1. */
static inline uint64_t spread(uint64_t word, int shift) {
  uint64_t each = (word >> shift & 255) * 0x0101010101010101u & 0x8040201008040201u;
  return ((each + 0x7f7f7f7f7f7f7f7fu) >> 7) & 0x0101010101010101u;
}

/* 1 where none of U sets of numbers, low < x <= high, or NaN where `missing`, holds a point: out (U, n), of
 * points (D, n). */
EXPORT void propopt_lacking(index U, index n, const index *column, const double *low, const double *high,
                            const uint8_t *missing, const double *points, uint8_t *out) {
  for (index u = 0; u < U; u++) {
    const double *x = points + column[u] * n, a = low[u], b = high[u];
    uint8_t *own = out + u * n;
    for (index r = 0; r < n; r++)
      own[r] = missing[u] ? (x[r] <= a) | (x[r] > b) : !((x[r] > a) & (x[r] <= b));
  }
}

/* Which of the p sets of a path hold each of 64 W background rows, as bits. */
static void background_patterns(const uint64_t *holding, index W, const index *path, index p,
                                uint64_t *pattern) {
  for (index r = 0; r < 64 * W; r++) pattern[r] = 0;
  for (index first = 0; first < p; first += 8)
    for (index w = 0; w < W; w++)
      for (int shift = 0; shift < 64; shift += 8) {
        uint64_t eight = 0, *out = pattern + 64 * w + shift;
        for (index k = first; k < p && k < first + 8; k++)
          eight |= spread(holding[path[k] * W + w], shift) << (k - first);
        for (int i = 0; i < 8; i++) out[i] |= (eight >> 8 * i & 255) << first;
      }
}

/* Sums over supersets, for each number of sets: cells (2^p, lanes). */
#define OVER_SUPERSETS(NAME, TYPE)                                \
  static void NAME(TYPE *cells, index p, index lanes) {           \
    for (index half = lanes; half < lanes << p; half *= 2)        \
      for (index a = 0; a < lanes << p; a += 2 * half) {          \
        TYPE *out = cells + a;                                    \
        for (index i = 0; i < half; i++) out[i] += out[half + i]; \
      }                                                           \
  }
OVER_SUPERSETS(over_supersets_of_counts, uint16_t)
OVER_SUPERSETS(over_supersets_of_weights, double)

/* A and B (2^p each) of one box, from Z_s[m] in cells. */
#define VECTORS(NAME, TYPE)                                                                                 \
  static void NAME(const TYPE *cells, index p, index lanes, double scale, const double *gains, double *A) { \
    double *B = A + ((index)1 << p);                                                                        \
    pair own[TABLE_SETS + 1][TABLE_SETS + 1];                                                               \
    for (index q = 0; q <= p; q++)                                                                          \
      for (index s = 0; s <= p; s++) {                                                                      \
        const double *g = gains + (p - s) * GAINS + q;                                                      \
        own[q][s] = (pair){g[0], g[q > 0 ? -1 : 0]};                                                        \
      }                                                                                                     \
    for (index m = 0; m < (index)1 << p; m++) {                                                             \
      int q = bits_of((uint64_t)m);                                                                         \
      const TYPE *Z = cells + m * lanes;                                                                    \
      pair sum = {0.0, 0.0};                                                                                \
      for (index s = q; s <= p; s++) sum += own[q][s] * (pair){(double)Z[s], (double)Z[s]};                 \
      A[m] = sum[0] * scale;                                                                                \
      B[m] = sum[1] * scale;                                                                                \
    }                                                                                                       \
  }
VECTORS(vectors_of_counts, uint16_t)
VECTORS(vectors_of_weights, double)

/* Tables (L, 2, 2^p) of L boxes of p <= TABLE_SETS sets. `holding` (V, W) has M rows as bits; rows have
 * `counts` if `weighted`, and are else fewer than 2^16. Scratch: pattern (64 W), cells (lanes 2^p). */
EXPORT void propopt_tables(index L, index p, index M, index W, index weighted, const uint64_t *holding,
                           const index *paths, const double *scale, const double *counts, const double *gains,
                           double *tables, uint64_t *pattern, double *cells) {
  const index lanes = lanes_of(p);
  uint16_t *whole = (uint16_t *)cells;
  for (index l = 0; l < L; l++) {
    double *A = tables + (l << (p + 1));
    background_patterns(holding, W, paths + l * p, p, pattern);
    memset(cells, 0, (weighted ? sizeof *cells : sizeof *whole) * (size_t)(lanes << p));
    for (index r = 0; r < M; r++) {
      index cell = (index)pattern[r] * lanes + bits_of(pattern[r]);
      if (weighted) cells[cell] += counts[r];
      else whole[cell]++;
    }
    if (weighted) {
      over_supersets_of_weights(cells, p, lanes);
      vectors_of_weights(cells, p, lanes, scale[l], gains, A);
    } else {
      over_supersets_of_counts(whole, p, lanes);
      vectors_of_counts(whole, p, lanes, scale[l], gains, A);
    }
  }
}

/* Which of the p sets of a path do not hold each of n rows, as bits. */
static void missing_sets(const uint8_t *lacking, index n, const index *path, index p, uint64_t *mask) {
  uint8_t eight[256]; /* of so many rows at once */
  for (index start = 0; start < n; start += 256)
    for (index first = 0; first < p; first += 8) {
      const index size = n - start < 256 ? n - start : 256;
      memset(eight, 0, (size_t)size);
      for (index k = (first + 8 < p ? first + 8 : p) - 1; k >= first; k--) {
        const uint8_t *lacks = lacking + path[k] * n + start;
        for (index r = 0; r < size; r++) eight[r] = (uint8_t)(eight[r] + eight[r] + lacks[r]);
      }
      for (index r = start; r < start + size; r++)
        mask[r] = (first > 0 ? mask[r] : 0) | (uint64_t)eight[r - start] << first;
    }
}

/* Adds A[m] - B[m with u] to phi (P, n). Sets and players of box l begin at start[l], its tables at place[l].
 * Scratch: mask (L or n, the larger), held (n). */
EXPORT void propopt_look_up(index L, index n, const index *start, const index *paths, const index *owner,
                            const uint8_t *lacking, const index *place, const double *tables, double *phi,
                            uint64_t *mask, double *held) {
  for (index r = 0; n < 8 && r < n; r++) { /* few rows: the tables are far apart */
    for (index l = 0; l < L; l++) {
      mask[l] = 0;
      for (index k = start[l]; k < start[l + 1]; k++)
        mask[l] |= (uint64_t)lacking[paths[k] * n + r] << (k - start[l]);
    }
    for (index l = 0; l < L; l++) {
      const double *A = tables + place[l];
      const index *own = owner + start[l], p = start[l + 1] - start[l];
      if (l + 6 < L) {
        const double *next = tables + place[l + 6] + mask[l + 6];
        __builtin_prefetch(next);
        __builtin_prefetch(next + ((index)1 << (start[l + 7] - start[l + 6])));
      }
      for (index k = 0; k < p; k++)
        phi[own[k] * n + r] += A[mask[l]] - A[((uint64_t)1 << p) + (mask[l] | (uint64_t)1 << k)];
    }
  }
  for (index l = 0; n >= 8 && l < L; l++) {
    const index *own = owner + start[l], p = start[l + 1] - start[l];
    const double *A = tables + place[l], *B = A + ((index)1 << p);
    missing_sets(lacking, n, paths + start[l], p, mask);
    for (index r = 0; r < n; r++) held[r] = A[mask[r]];
    for (index k = 0; k < p; k++)
      for (index r = 0; r < n; r++) phi[own[k] * n + r] += held[r] - B[mask[r] | (uint64_t)1 << k];
  }
}

/* Adds what L boxes of p sets give to phi (P, n), by the background rows that the missing sets of each row
 * hold. The arguments are those of the two kernels above. Scratch: words (384 W), mask (n). */
EXPORT void propopt_visit(index L, index p, index n, index M, index W, index weighted,
                          const uint64_t *holding, const index *paths, const index *owner,
                          const uint8_t *lacking, const double *scale, const double *counts,
                          const double *gains, double *phi, uint64_t *words, uint64_t *mask) {
  const uint64_t full = ((uint64_t)1 << p) - 1;
  uint64_t *pattern = words, *found = words + 64 * W, *held = words + 128 * W;
  double number[MOST_SETS + 1], sum[MOST_SETS + 1][MOST_SETS], B[MOST_SETS];
  uint16_t bit[16], count[MOST_SETS + 1][64];
  for (int i = 0; i < 16; i++) bit[i] = (uint16_t)(1 << i);
  for (index l = 0; l < L; l++) {
    const index *path = paths + l * p, *own = owner + l * p;
    index seen = 0;
    missing_sets(lacking, n, path, p, mask);
    for (index k = 0; n >= 16 && k < p; k++) { /* the rows that all of some sets hold, of four sets each */
      uint64_t *some = held + k / 4 * 16 * W, *more = some + (W << k % 4);
      for (index w = 0; k % 4 == 0 && w < W; w++) some[w] = ~(uint64_t)0;
      for (index i = 0; i < W << k % 4; i += W)
        for (index w = 0; w < W; w++) more[i + w] = some[i + w] & holding[path[k] * W + w];
    }
    for (index r = 0; r < n; r++) {
      const uint64_t m = mask[r];
      const index q = bits_of(m), before = seen;
      for (index w = 0; w < W; w++) {
        uint64_t hits = w == W - 1 && M % 64 ? ((uint64_t)1 << M % 64) - 1 : ~(uint64_t)0;
        for (uint64_t rest = n < 16 ? m : 0; rest && hits; rest &= rest - 1)
          hits &= holding[path[__builtin_ctzll(rest)] * W + w];
        for (index k = 0; n >= 16 && k < p; k += 4) hits &= held[(4 * k + (index)(m >> k & 15)) * W + w];
        for (; hits; hits &= hits - 1) found[seen++ - before] = (uint64_t)(64 * w + __builtin_ctzll(hits));
      }
      if (seen == before) continue;
      if (before <= M / 8 && seen > M / 8) background_patterns(holding, W, path, p, pattern);
      double A = 0.0, with_own = 0.0;
      uint64_t used = 0;
      for (index i = 0; i < seen - before; i++) {
        const index b = (index)found[i];
        uint64_t lacks = 0;
        if (seen > M / 8) lacks = full & ~pattern[b];
        else /* the first few are looked at by themselves */
          for (index k = 0; k < p; k++) lacks |= (~holding[path[k] * W + b / 64] >> b % 64 & 1) << k;
        const index s = p - bits_of(lacks);
        if (!(used >> s & 1)) {
          number[s] = 0.0;
          if (weighted) memset(sum[s], 0, sizeof sum[s]);
          else memset(count[s], 0, sizeof count[s]);
        }
        used |= (uint64_t)1 << s;
        number[s] += weighted ? counts[b] : 1.0;
        for (index k = 0; weighted && k < p; k++) sum[s][k] += lacks >> k & 1 ? counts[b] : 0.0;
        for (index k = 0; !weighted && k < p; k += 16) {
          const uint16_t some = (uint16_t)(lacks >> k);
          for (int j = 0; j < 16; j++) count[s][k + j] += (some & bit[j]) != 0;
        }
      }
      for (index k = 0; k < p; k++) B[k] = 0.0;
      for (; used; used &= used - 1) {
        const index s = __builtin_ctzll(used);
        const double *g = gains + (p - s) * GAINS + q;
        A += number[s] * g[0];
        if (q > 0) with_own += number[s] * g[-1];
        for (index k = 0; weighted && k < p; k++) B[k] += (number[s] - sum[s][k]) * g[0];
        for (index k = 0; !weighted && k < p; k++) B[k] += (number[s] - count[s][k]) * g[0];
      }
      for (uint64_t rest = m; rest; rest &= rest - 1) B[__builtin_ctzll(rest)] = with_own;
      for (index k = 0; k < p; k++) phi[own[k] * n + r] += A * scale[l] - B[k] * scale[l];
    }
  }
}
