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

/* ---- Trees: nodes in preorder, a left child right behind its parent */

typedef struct {
  const index *roots;            /* the first node of each tree, and the end */
  const int32_t *column, *right; /* -1 at leaves; the right child */
  const int32_t *codes;          /* the row of members that a node compares with; -1: it has a threshold */
  const double *number;          /* the threshold, or the value of a leaf */
  const uint8_t *missing_left, *members;
  index K; /* codes in each row of members */
} nodes;

static inline int goes_left(const nodes *tree, index i, double x) {
  if (tree->codes[i] >= 0)
    return x >= 0.0 && x < (double)tree->K && tree->members[tree->codes[i] * tree->K + (index)x];
  return tree->missing_left[i] ? !(x > tree->number[i]) : x <= tree->number[i];
}

/* Adds the values of T trees at n points (n, D) to values (n), tree by tree. */
EXPORT void propopt_walk(index T, index n, index D, index K, const index *roots, const int32_t *column,
                         const int32_t *right, const int32_t *codes, const double *number,
                         const uint8_t *missing_left, const uint8_t *members, const double *points,
                         double *values) {
  const nodes tree = {roots, column, right, codes, number, missing_left, members, K};
  for (index t = 0; t < T; t++)
    for (index r = 0; r < n; r++) {
      index i = roots[t];
      while (column[i] >= 0) i = goes_left(&tree, i, points[r * D + column[i]]) ? i + 1 : right[i];
      values[r] += number[i];
    }
}

/* ---- Means of trees under independent columns, and contrasts in each column
 *
 * A tree is a sum over leaves, v_l prod_u P_u, with a set u for each column that leads to the leaf. Cells of
 * a column begin at first[j]: its numbers up to each cut, from none to all, then NaN; or its codes. Their
 * means and contrasts are P and R (U, n), at row[cell]; those of a set are differences or sums of them. */

typedef struct {
  int32_t column, low, high; /* the cuts below and above; numbers between them are in the set */
  int missing, coded;
} interval;

/* The sets that lead to a leaf, at[depth]: how many, or -1 if one of them is empty or the value is zero. The
 * codes in sets are in `codes_in` (sets, K). */
static index sets_of_leaf(const nodes *tree, const index *at, index depth, const int32_t *cut,
                          const index *first, interval *sets, uint8_t *codes_in) {
  index p = 0;
  if (tree->number[at[depth]] == 0.0) return -1;
  for (index d = 0; d < depth; d++) {
    const index i = at[d], K = tree->K;
    const int is_right = at[d + 1] != i + 1;
    const int32_t j = tree->column[i];
    const index size = first[j + 1] - first[j];
    index k = 0;
    while (k < p && sets[k].column != j) k++;
    interval *own = sets + k;
    if (k == p) {
      *own = (interval){j, 0, (int32_t)size - 2, 1, tree->codes[i] >= 0};
      for (index code = 0; own->coded && code < size; code++) codes_in[k * K + code] = 1;
      p++;
    }
    if (own->coded) {
      const uint8_t *left = tree->members + tree->codes[i] * K;
      for (index code = 0; code < size; code++) codes_in[k * K + code] &= left[code] ^ is_right;
      continue;
    }
    own->missing &= tree->missing_left[i] != is_right;
    if (is_right && cut[i] > own->low) own->low = cut[i];
    if (!is_right && cut[i] < own->high) own->high = cut[i];
    if (own->low >= own->high && !own->missing) return -1;
  }
  return p;
}

/* Means and contrasts (n) of a set, as sums of those of its cells. */
static inline void measures_of(const interval *set, const uint8_t *codes_in, const index *row, index size,
                               index n, const double *P, const double *R, double *p, double *r) {
  for (index i = 0; i < n; i++) p[i] = r[i] = 0.0;
  if (set->coded) {
    int all = 1;
    for (index code = 0; code < size; code++) {
      all &= codes_in[code];
      for (index i = 0; codes_in[code] && i < n; i++) {
        p[i] += P[row[code] * n + i];
        r[i] += R[row[code] * n + i];
      }
    }
    for (index i = 0; all && i < n; i++) r[i] = 0.0; /* contrasts add up to 0 */
    return;
  }
  const index low = row[set->low] * n, high = row[set->high] * n, none = row[size - 1] * n;
  for (index i = 0; set->low < set->high && i < n; i++) {
    p[i] = P[high + i] - P[low + i];
    r[i] = R[high + i] - R[low + i];
  }
  for (index i = 0; set->missing && i < n; i++) {
    p[i] += P[none + i];
    r[i] += R[none + i];
  }
}

static inline void leaf_contrasts(const nodes *tree, index p, index n, double value, const interval *sets,
                                  const uint8_t *codes_in, const index *first, const index *row,
                                  const double *P, const double *R, double *total, double *contrast,
                                  double *scratch) {
  double *front = scratch, *mean = front + (p + 1) * n, *slope = mean + p * n;
  for (index r = 0; r < n; r++) front[r] = value;
  for (index k = 0; k < p; k++) {
    const index cells = first[sets[k].column], size = first[sets[k].column + 1] - cells;
    double *own = mean + k * n, *so_far = front + k * n;
    measures_of(sets + k, codes_in + k * tree->K, row + cells, size, n, P, R, own, slope + k * n);
    for (index r = 0; r < n; r++) so_far[n + r] = so_far[r] * own[r];
  }
  double *behind = front + p * n; /* the product, then what is behind a factor */
  for (index r = 0; r < n; r++) {
    total[r] += behind[r];
    behind[r] = 1.0;
  }
  for (index k = p - 1; k >= 0; k--) {
    double *out = contrast + sets[k].column * n;
    const double *own = mean + k * n, *before = front + k * n, *of_set = slope + k * n;
    for (index r = 0; r < n; r++) {
      out[r] += before[r] * behind[r] * of_set[r];
      behind[r] *= own[r];
    }
  }
}

/* Adds means of T trees to total (n), and contrasts to contrast (D, n). cut: the number of each node's
 * threshold among those of its column, from 1. Scratch: depths (5 + K / 8) + (3 depths + 1) n words. */
EXPORT void propopt_tree_contrasts(index T, index n, index K, index depths, const index *roots,
                                   const int32_t *column, const int32_t *right, const int32_t *codes,
                                   const double *number, const uint8_t *missing_left, const uint8_t *members,
                                   const int32_t *cut, const index *first, const index *row, const double *P,
                                   const double *R, double *total, double *contrast, uint64_t *scratch) {
  const nodes tree = {roots, column, right, codes, number, missing_left, members, K};
  index *at = (index *)scratch;
  interval *sets = (interval *)(scratch + depths);
  uint8_t *codes_in = (uint8_t *)(scratch + 4 * depths);
  double *numbers = (double *)(scratch + depths * (5 + K / 8));
  for (index t = 0; t < T; t++)
    for (index depth = 0, i = roots[t]; i < roots[t + 1]; i++) {
      while (depth > 0 && at[depth - 1] + 1 != i && right[at[depth - 1]] != i) depth--;
      at[depth] = i;
      if (column[i] >= 0) {
        depth++;
        continue;
      }
      const index p = sets_of_leaf(&tree, at, depth, cut, first, sets, codes_in);
      if (p < 0) continue;
      if (n == 1) /* by itself, so that loops over rows vanish */
        leaf_contrasts(&tree, p, 1, number[i], sets, codes_in, first, row, P, R, total, contrast, numbers);
      else leaf_contrasts(&tree, p, n, number[i], sets, codes_in, first, row, P, R, total, contrast, numbers);
    }
}

/* ---- Shapley values of trees: structures/boxes/shapley.py says what is computed
 *
 * A tree is visited in preorder. At each node, for each background row and each row to explain, bits say
 * which of the sets so far hold it: a set for each player whose columns were tested, in planes of 16 bits.
 * Rows of the background are left out as soon as a set lacks them that no row to explain is in. */

enum { MOST_SETS = 62, GAINS = MOST_SETS + 2, TABLE_SETS = 16, PLANES = 4 };

typedef struct {
  index node, end;                             /* a node, and the end of its subtree */
  index sets, rows;                            /* sets so far, background rows that are left */
  const uint32_t *entries;                     /* NULL for all background rows */
  const uint16_t *row;                         /* which these are, at leaves; NULL for all */
  const uint16_t *seen[PLANES], *held[PLANES]; /* the sets that hold each of them, and each row to explain */
} level;

typedef struct {
  nodes tree;
  index P, M, N; /* players, background rows, rows to explain */
  const int32_t *player;
  const uint16_t *bound, *ranks; /* of nodes; of the background (D, M): x <= threshold if rank < bound */
  const double *points;          /* (D, N) */
  level *at, *right;             /* of each depth: where we are, and a right child that waits */
  uint16_t *space, *zeros;
  int alone; /* leave out rows of the background that more than one set lacks */
  int32_t own[MOST_SETS];
} visit;

static inline int bits_of(uint64_t x) {
  x -= x >> 1 & 0x5555555555555555u;
  x = (x & 0x3333333333333333u) + (x >> 2 & 0x3333333333333333u);
  x = (x + (x >> 4)) & 0x0f0f0f0f0f0f0f0fu;
  return (int)(x * 0x0101010101010101u >> 56);
}

#define TWO(n) n, n + 1, n + 1, n + 2
#define FOUR(n) TWO(n), TWO(n + 1), TWO(n + 1), TWO(n + 2)
#define SIX(n) FOUR(n), FOUR(n + 1), FOUR(n + 1), FOUR(n + 2)
static const uint8_t bits_of_byte[256] = {SIX(0), SIX(1), SIX(1), SIX(2)};
#undef TWO
#undef FOUR
#undef SIX

/* For background rows, all bits if they go left at a node, else none. */
static void background_goes(const visit *v, const level *here, uint16_t *goes) {
  const nodes *tree = &v->tree;
  const index i = here->node, n = here->rows;
  const uint16_t *rank = v->ranks + tree->column[i] * v->M;
  const uint32_t *left = here->entries;
  if (tree->codes[i] >= 0) {
    const uint8_t *member = tree->members + tree->codes[i] * tree->K;
    for (index r = 0; r < n; r++) goes[r] = (uint16_t)-member[rank[left ? left[r] >> 16 : r]];
    return;
  }
  /* the rank of NaN is the largest: one more is the smallest */
  const uint16_t shift = tree->missing_left[i], bound = v->bound[i];
  for (index r = 0; left && r < n; r++)
    goes[r] = (uint16_t)-((uint16_t)(rank[left[r] >> 16] + shift) < bound);
  for (index r = 0; !left && r < n; r++) goes[r] = (uint16_t)-((uint16_t)(rank[r] + shift) < bound);
}

static void points_go(const visit *v, index i, uint16_t *goes) {
  const nodes *tree = &v->tree;
  const double *x = v->points + tree->column[i] * v->N, cut = tree->number[i];
  const int coded = tree->codes[i] >= 0, missing_left = tree->missing_left[i];
  for (index r = 0; r < v->N; r++)
    goes[r] = (uint16_t)-(coded ? goes_left(tree, i, x[r]) : missing_left ? !(x[r] > cut) : x[r] <= cut);
}

/* The sets that hold rows at both children of a node, the left one in place of `left`. The bit of a new
 * player is added on the side that a row goes to, and other bits are dropped on the other side. */
static void both_sides(index n, uint16_t bit, uint16_t add, const uint16_t *restrict from,
                       uint16_t *restrict left, uint16_t *restrict right) {
  for (index r = 0; r < n; r++) {
    const uint16_t own = (uint16_t)((from[r] | add) & bit), rest = (uint16_t)(from[r] & ~bit);
    const uint16_t inside = own & left[r];
    left[r] = rest | inside;
    right[r] = rest | (own ^ inside);
  }
}

/* Where some background rows are left out, each one that is left is listed with its first 16 sets. */
static inline uint32_t entry(uint16_t row, uint16_t sets) { return (uint32_t)row << 16 | sets; }

/* Entries at a child that no row to explain needs without the set `bit`, or, if `full`, without rows that
 * more than one set lacks. Returns how many there are. */
static index listed(index n, uint16_t bit, uint16_t full, const uint16_t *sets, uint32_t *to) {
  index k = 0;
  for (index r = 0; r < n; r++) {
    const uint16_t lacks = full & (uint16_t)~sets[r];
    to[k] = entry((uint16_t)r, sets[r]);
    k += full ? !(lacks & (lacks - 1)) : (sets[r] & bit) != 0;
  }
  return k;
}

typedef struct {
  const uint16_t *rank; /* of the column of a node */
  const uint8_t *member;
  uint32_t bound, right; /* this many ranks from the bound go right */
  uint32_t bit, add, full;
} test;

/* -1 if an entry goes right at a node, else 0. */
static inline int64_t goes_right(test by, int coded, uint32_t from) {
  const uint16_t rank = by.rank[from >> 16];
  return coded ? (int64_t)by.member[rank] - 1 : ((int64_t)(rank - by.bound) - by.right) >> 63;
}

/* Entries at both children. A side that needs the bit is without the others. If one does, the other has all
 * entries: first it is known of each whether it goes to the first side, in place of them. */
static inline void entries_of(test by, int coded, int is_new, int left_needs, int right_needs, index n,
                              const uint32_t *restrict from, uint32_t *restrict left,
                              uint32_t *restrict right, index count[2]) {
  index l = 0, r = 0;
  if (left_needs != right_needs) {
    uint32_t *restrict some = left_needs ? left : right, *restrict all = left_needs ? right : left;
    for (index i = 0; i < n; i++) {
      const uint32_t own = from[i], to_right = (uint32_t)goes_right(by, coded, own);
      const uint32_t goes = left_needs ? ~to_right : to_right;
      all[i] = goes;
      some[r] = is_new ? own | by.bit : own;
      r += is_new ? goes & 1 : (own & by.bit & goes) != 0;
    }
    for (index i = 0; i < n; i++)
      all[i] = is_new ? from[i] | (by.bit & ~all[i]) : from[i] & ~(by.bit & all[i]);
    count[0] = left_needs ? r : n;
    count[1] = left_needs ? n : r;
    return;
  }
  if (left_needs) { /* all entries are in the set already */
    for (index i = 0; i < n; i++) {
      const int64_t goes = goes_right(by, coded, from[i]);
      left[l] = right[r] = from[i];
      l += 1 + goes;
      r -= goes;
    }
    count[0] = l;
    count[1] = r;
    return;
  }
  for (index i = 0; i < n; i++) {
    const uint32_t own = is_new ? by.bit : from[i] & by.bit, rest = from[i] & ~by.bit;
    const uint32_t outside = own & (uint32_t)goes_right(by, coded, from[i]);
    left[i] = rest | (own ^ outside);
    right[i] = rest | outside;
  }
  count[0] = count[1] = n;
}

/* The same without entries that more than one set lacks. */
static void lone_entries(test by, index n, const uint32_t *from, uint32_t *left, uint32_t *right,
                         index count[2]) {
  index l = 0, r = 0;
  for (index i = 0; i < n; i++) {
    const uint32_t own = (from[i] | by.add) & by.bit, rest = from[i] & ~by.bit;
    const uint32_t outside = own & (uint32_t)goes_right(by, by.member != NULL, from[i]);
    left[l] = rest | (own ^ outside);
    right[r] = rest | outside;
    const uint32_t lacks[2] = {by.full & ~left[l], by.full & ~right[r]};
    l += !(lacks[0] & (lacks[0] - 1));
    r += !(lacks[1] & (lacks[1] - 1));
  }
  count[0] = l;
  count[1] = r;
}

static void both_entries(test by, int left_needs, int right_needs, index n, const uint32_t *from,
                         uint32_t *left, uint32_t *right, index count[2]) {
#define CASE(coded, is_new, a, b)                                     \
  case 8 * coded + 4 * is_new + 2 * a + b:                            \
    entries_of(by, coded, is_new, a, b, n, from, left, right, count); \
    break;
#define CASES(coded, is_new) \
  CASE(coded, is_new, 0, 0) CASE(coded, is_new, 0, 1) CASE(coded, is_new, 1, 0) CASE(coded, is_new, 1, 1)
  if (by.full) lone_entries(by, n, from, left, right, count);
  else switch (8 * (by.member != NULL) + 4 * (by.add != 0) + 2 * left_needs + right_needs) {
      CASES(0, 0) CASES(0, 1) CASES(1, 0) CASES(1, 1)
    }
}

/* What is known at both children of an inner node: v->at and v->right, a level below it. */
static void split(visit *v, index depth) {
  const nodes *tree = &v->tree;
  const level *here = v->at + depth;
  const index i = here->node, M = v->M, N = v->N, n = here->rows;
  const int32_t column = tree->column[i], player = v->player[column], codes = tree->codes[i];
  level *child[2] = {v->at + depth + 1, v->right + depth + 1};
  uint16_t *space = v->space + depth * (6 * M + 2 * N), any[2] = {0, 0};
  uint32_t *entries[2] = {(uint32_t *)space, (uint32_t *)space + M};
  uint16_t *seen[2] = {space + 4 * M, space + 5 * M}, *held[2] = {space + 6 * M, space + 6 * M + N};
  index k = 0, count[2] = {n, n};
  while (k < here->sets && v->own[k] != player) k++;
  const uint16_t bit = (uint16_t)(1 << k % 16), add = k == here->sets ? bit : 0;
  const index sets = here->sets + (add != 0);
  const uint16_t full = v->alone && sets <= 16 ? (uint16_t)((1 << sets) - 1) : 0;
  if (add) v->own[k] = player;
  points_go(v, i, held[0]);
  both_sides(N, bit, add, here->held[k / 16], held[0], held[1]);
  for (index r = 0; r < N; r++) any[0] |= held[0][r], any[1] |= held[1][r];
  const int few = sets <= 16 && N > 0 && M > 0, needs[2] = {few && !(any[0] & bit), few && !(any[1] & bit)};
  const int in_entries = here->entries && k < 16;
  if (in_entries) {
    /* the rank of NaN is the largest: it goes left where bounds are one more */
    const uint32_t bound = (uint32_t)(v->bound[i] - tree->missing_left[i]);
    const test by = {v->ranks + column * M,
                     codes < 0 ? NULL : tree->members + codes * tree->K,
                     bound,
                     65536 - v->bound[i],
                     bit,
                     add,
                     full};
    both_entries(by, needs[0], needs[1], n, here->entries, entries[0], entries[1], count);
  } else if (M > 0) {
    background_goes(v, here, seen[0]);
    both_sides(n, bit, add, here->seen[k / 16], seen[0], seen[1]);
  }
  for (int is_right = 0; is_right < 2; is_right++) {
    level *below = child[is_right];
    *below = *here;
    below->node = is_right ? tree->right[i] : i + 1;
    if (!is_right) below->end = tree->right[i];
    below->sets = sets;
    below->held[k / 16] = held[is_right];
    below->seen[k / 16] = seen[is_right];
    const int in_part = needs[is_right] || full;
    if (!in_entries && in_part) count[is_right] = listed(n, bit, full, seen[is_right], entries[is_right]);
    if (in_entries || in_part) below->entries = entries[is_right];
    below->rows = count[is_right];
  }
}

/* What is known at a node, from what is known at its parent, one level above. */
static const level *enter(visit *v, index i, index depth, index end) {
  level *here = v->at + depth;
  if (depth == 0) {
    *here = (level){i, end, 0, v->M, NULL, NULL, {NULL}, {NULL}};
    for (int k = 0; k < PLANES; k++) here->seen[k] = here->held[k] = v->zeros;
    return here;
  }
  /* players of sets are those of the node above: a left subtree has added others behind them */
  if (i == here[-1].node + 1) split(v, depth - 1);
  else *here = v->right[depth];
  if (here->entries && v->tree.column[i] < 0) {
    uint16_t *row = v->space + depth * (6 * v->M + 2 * v->N), *seen = row + v->M;
    for (index r = 0; r < here->rows; r++) row[r] = (uint16_t)(here->entries[r] >> 16);
    for (index r = 0; r < here->rows; r++) seen[r] = (uint16_t)here->entries[r];
    here->row = row;
    here->seen[0] = seen;
  }
  return here;
}

/* The node behind a leaf or a subtree, and its depth. */
static index behind(const visit *v, const level *here, index *depth) {
  const index i = here->end;
  while (*depth > 0 && v->tree.right[v->at[*depth - 1].node] != i) --*depth;
  return i;
}

/* The bits of all planes, of n rows. */
static void as_words(const uint16_t *const planes[PLANES], index sets, index n, uint64_t *words) {
  for (index r = 0; r < n; r++) words[r] = planes[0][r];
  for (index k = 16; k < sets; k += 16)
    for (index r = 0; r < n; r++) words[r] |= (uint64_t)planes[k / 16][r] << k;
}

/* Numbers of two sets by which m grows: of m, of m and one set, the other, both. */
typedef double quad __attribute__((vector_size(32), aligned(8)));

/* What counts of background rows need: of[n][q + 2] has g(n, q), g(n, q + 1) twice, g(n, q + 2). For q < 0 it
 * has g(n, 0). */
enum { SIZES = TABLE_SETS + 1, MOST_PAIRS = MOST_SETS * (MOST_SETS - 1) / 2 };
typedef struct {
  index order;                  /* 1: of sets, by A[m] and B[m]; 2: of pairs of sets, with C[m] besides */
  const double *weight, *gains; /* weight: of background rows; NULL if these are equal */
  double total, whole;          /* all weights, and those of the rows in all sets of a leaf */
  double *count, *cells;
  quad of[SIZES][SIZES + 2];
} counting;

static void near_gains(counting *c) {
  for (index n = 0; n < SIZES; n++)
    for (index q = -2; q < SIZES; q++) {
      const double *g = c->gains + n * GAINS;
      const double one = g[q > -1 ? q + 1 : 0];
      c->of[n][q + 2] = (quad){g[q > 0 ? q : 0], one, one, g[q + 2]};
    }
}

/* The place of a pair, j < k, among all: of sets of a leaf, and of the players of two of them. */
static inline index pair_at(index j, index k) { return k * (k - 1) / 2 + j; }

static inline index pair_of(const visit *v, index j, index k) {
  const index a = v->own[j], b = v->own[k];
  return a < b ? pair_at(a, b) : pair_at(b, a);
}

/* From one Z_s to the next, so that they are not in the same lines of a cache. */
static inline index plane_of(index p) { return ((index)1 << p) + (p < 3 ? 8 : 32); }

#define ALWAYS_INLINE static inline __attribute__((always_inline))

typedef uint16_t eight __attribute__((vector_size(16), aligned(2)));
typedef uint16_t four_counts __attribute__((vector_size(8), aligned(2)));
typedef int32_t four __attribute__((vector_size(16)));
typedef double two __attribute__((vector_size(16), aligned(8)));

/* Z_s[m] in cells (p, plane): the number of background rows in s sets, those of m among them. Of each eight m
 * the lowest three sets are summed by themselves, the others two sets at once. There are two counts, as one
 * would wait for itself; they come and go as zeros. */
#define OVER_SUPERSETS(NAME, TYPE, VECTOR)                                                           \
  static double NAME(index p, TYPE *count, TYPE *cells) {                                            \
    const index plane = plane_of(p), last = ((index)1 << p) - 1;                                     \
    const double whole = (double)count[2 * last] + (double)count[2 * last + 1];                      \
    count[2 * last] = count[2 * last + 1] = 0;                                                       \
    memset(cells, 0, sizeof *cells * (size_t)(p * plane));                                           \
    for (index a = 0; a <= last; a += 8) {                                                           \
      const index s = bits_of_byte[a & 255] + bits_of_byte[a >> 8];                                  \
      TYPE n[8] = {0}, *out = cells + s * plane + a;                                                 \
      for (index i = 0; i < 8 && a + i <= last; i++)                                                 \
        n[i] = (TYPE)(count[2 * (a + i)] + count[2 * (a + i) + 1]);                                  \
      if (s < p) out[0] = n[0];                                                                      \
      out += plane;                                                                                  \
      if (s + 1 < p) {                                                                               \
        out[0] = (TYPE)(n[1] + n[2] + n[4]);                                                         \
        out[1] = n[1];                                                                               \
        out[2] = n[2];                                                                               \
        out[4] = n[4];                                                                               \
      }                                                                                              \
      out += plane;                                                                                  \
      if (s + 2 < p) {                                                                               \
        out[0] = (TYPE)(n[3] + n[5] + n[6]);                                                         \
        out[1] = (TYPE)(n[3] + n[5]);                                                                \
        out[2] = (TYPE)(n[3] + n[6]);                                                                \
        out[4] = (TYPE)(n[5] + n[6]);                                                                \
        out[3] = n[3];                                                                               \
        out[5] = n[5];                                                                               \
        out[6] = n[6];                                                                               \
      }                                                                                              \
      out += plane;                                                                                  \
      for (index i = 0; s + 3 < p && i < 8; i++) out[i] = n[7];                                      \
    }                                                                                                \
    memset(count, 0, sizeof *count * ((size_t)2 << p));                                              \
    const index some = 8 * (index)sizeof(TYPE) / (index)sizeof(VECTOR), all = some * (last + 1) / 8; \
    for (index s = 0; s < p; s++) {                                                                  \
      VECTOR *Z = (VECTOR *)(cells + s * plane);                                                     \
      index half = some;                                                                             \
      for (; 4 * half <= all; half *= 4)                                                             \
        for (index a = 0; a < all; a += 4 * half)                                                    \
          for (index i = a; i < a + half; i++) {                                                     \
            const VECTOR both = Z[3 * half + i], second = Z[2 * half + i];                           \
            const VECTOR first = Z[half + i] + both;                                                 \
            Z[i] += first + second;                                                                  \
            Z[half + i] = first;                                                                     \
            Z[2 * half + i] = second + both;                                                         \
          }                                                                                          \
      for (index i = 0; 2 * half <= all && i < half; i++) Z[i] += Z[half + i];                       \
    }                                                                                                \
    return whole;                                                                                    \
  }
OVER_SUPERSETS(counts_over_supersets, uint16_t, eight)
OVER_SUPERSETS(weights_over_supersets, double, two)

static void over_supersets(counting *c, const level *here) {
  const uint16_t *seen = here->seen[0];
  uint16_t *count = (uint16_t *)c->count;
  index r = 0;
  if (c->weight) {
    for (; r < here->rows; r++) c->count[2 * seen[r]] += c->weight[here->row ? here->row[r] : r];
    c->whole = weights_over_supersets(here->sets, c->count, c->cells);
    return;
  }
  for (; r + 1 < here->rows; r += 2) {
    count[2 * seen[r]]++;
    count[2 * seen[r + 1] + 1]++;
  }
  if (r < here->rows) count[2 * seen[r]]++;
  c->whole = counts_over_supersets(here->sets, count, (uint16_t *)c->cells);
}

/* A[m], B[m] or C[m] of a leaf with value / total = 1, for t = 0, 1 or 2 and m of q sets. */
static inline double vector_at(const counting *c, index t, index p, index q, index m) {
  const index plane = plane_of(p);
  double sum = 0.0;
  for (index s = q; s < p; s++) {
    const index cell = s * plane + m;
    const double Z = c->weight ? c->cells[cell] : (double)((const uint16_t *)c->cells)[cell];
    sum += Z * c->of[p - s][q + 2 - t][0];
  }
  return sum + c->whole * c->of[0][q + 2 - t][0];
}

/* Four cells of Z as numbers. */
ALWAYS_INLINE void numbers_of(const counting *c, index cell, quad *Z) {
  if (c->weight) *Z = *(const quad *)(c->cells + cell);
  else {
    const four_counts *counts = (const four_counts *)((const uint16_t *)c->cells + cell);
    *Z = __builtin_convertvector(__builtin_convertvector(*counts, four), quad);
  }
}

/* A[m] and B[m] of all m, in eights: these have q, q + 1, q + 1, q + 2, and q + 1, q + 2, q + 2, q + 3 sets.
 * For t = 1, B[m] and C[m]. */
ALWAYS_INLINE void any_vectors(const counting *c, index t, index p, double scale, double *A) {
  const index size = (index)1 << p, plane = plane_of(p);
  for (index q = 0; q <= p - 3; q++) {
    const quad *last = c->of[0] + q + 2 - t;
    for (index at = ((index)1 << q) - 1; at < size >> 3;) {
      const quad *g = c->of[p - q] + q + 2 - t;
      quad first = {0.0}, more_first = {0.0}, second = {0.0}, more_second = {0.0};
      for (index cell = q * plane + 8 * at; g != last; cell += plane, g -= SIZES + 2) {
        quad Z, more;
        numbers_of(c, cell, &Z);
        numbers_of(c, cell + 4, &more);
        first += Z * g[0];
        more_first += more * g[1];
        second += Z * g[-1];
        more_second += more * g[0];
      }
      quad *out = (quad *)(A + t * size + 8 * at), *next = (quad *)(A + (t + 1) * size + 8 * at);
      out[0] = (first + c->whole * last[0]) * scale;
      out[1] = (more_first + c->whole * last[1]) * scale;
      next[0] = (second + c->whole * last[-1]) * scale;
      next[1] = (more_second + c->whole * last[0]) * scale;
      if (q == 0) break;
      const index above = at + (at & -at); /* the next one: its lowest run of bits is carried */
      at = above | (at ^ above) >> 2 >> __builtin_ctzll((uint64_t)at);
    }
  }
}

#ifdef __x86_64__
__attribute__((target("avx2"))) static void wide_vectors(const counting *c, index t, index p, double scale,
                                                         double *A) {
  any_vectors(c, t, p, scale, A);
}
#endif

static void vectors(const counting *c, index p, double scale, double *A) {
  for (index t = 0; p < 3 && t <= c->order; t++)
    for (index m = 0; m < (index)1 << p; m++) *A++ = vector_at(c, t, p, bits_of((uint64_t)m), m) * scale;
  for (index t = 0; p >= 3 && t < c->order; t++) {
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx2")) wide_vectors(c, t, p, scale, A);
    else
#endif
      any_vectors(c, t, p, scale, A);
  }
}

/* What a leaf gives to each of its sets or pairs: from A[m], B[m with k] of each k, and for pairs
 * C[m with j and k], which `change` comes with. */
static void differences(const counting *c, index p, double A, const double *B, double *change, index stride) {
  if (c->order == 1)
    for (index k = 0; k < p; k++) change[k * stride] = A - B[k];
  else
    for (index k = 1; k < p; k++)
      for (index j = 0; j < k; j++, change += stride) *change = A - (B[j] + B[k]) + *change;
}

/* The same for rows that the sets m lack, by the counts over supersets. */
static void by_counts(const counting *c, index p, index m, double scale, double *change, index stride) {
  const index q = bits_of((uint64_t)m);
  const double inside = vector_at(c, 1, p, q, m);
  double B[TABLE_SETS];
  for (index k = 0; k < p; k++)
    B[k] = (m >> k & 1 ? inside : vector_at(c, 1, p, q + 1, m | (index)1 << k)) * scale;
  for (index k = 1; c->order == 2 && k < p; k++)
    for (index j = 0; j < k; j++) {
      const index with = m | (index)1 << j | (index)1 << k;
      change[pair_at(j, k) * stride] = vector_at(c, 2, p, bits_of((uint64_t)with), with) * scale;
    }
  differences(c, p, vector_at(c, 0, p, q, m) * scale, B, change, stride);
}

/* The same by tables of all m. */
static void by_vectors(const counting *c, const double *A, index p, index m, double *change, index stride) {
  const double *C = A + ((index)2 << p);
  double B[TABLE_SETS];
  for (index k = 0; k < p; k++) B[k] = A[((index)1 << p) + (m | (index)1 << k)];
  for (index k = 1; c->order == 2 && k < p; k++)
    for (index j = 0; j < k; j++) change[pair_at(j, k) * stride] = C[m | (index)1 << j | (index)1 << k];
  differences(c, p, A[m], B, change, stride);
}

#define TWO(n, bit) n, (n) + ((uint64_t)1 << bit)
#define FOUR(n, bit) TWO(n, bit), TWO((n) + ((uint64_t)1 << (bit + 8)), bit)
#define SIX(n, bit) FOUR(n, bit), FOUR((n) + ((uint64_t)1 << (bit + 16)), bit)
#define EIGHT(n, bit) SIX(n, bit), SIX((n) + ((uint64_t)1 << (bit + 24)), bit)
#define SIXTEEN(n) EIGHT(n, 0), EIGHT((n) + ((uint64_t)1 << 32), 0)
#define MANY(n) SIXTEEN(n), SIXTEEN((n) + ((uint64_t)1 << 40))
#define MORE(n) MANY(n), MANY((n) + ((uint64_t)1 << 48))
/* The bits of a byte, one in each byte of a word. */
static const uint64_t spread[256] = {MORE((uint64_t)0), MORE((uint64_t)1 << 56)};

/* For rows that all sets of m hold, and each number s of sets: how many rows, and how many that each set
 * holds. */
typedef struct {
  double number[MOST_SETS + 1], of_set[MOST_SETS + 1][MOST_SETS];
} hits;

/* Rows of up to 8 or 16 sets that all sets of m hold: how many of s sets each set holds, up to 255 rows at
 * once in the bytes of words. */
static inline void add_hits(int wide, uint64_t none, index n, const uint16_t *seen, uint16_t m, index q,
                            index p, uint16_t *number, uint16_t of_set[][TABLE_SETS]) {
  uint64_t low[TABLE_SETS + 1], high[TABLE_SETS + 1];
  for (index s = q; s <= p; s++) low[s] = high[s] = none;
  for (index r = 0; r < n; r++) {
    const uint16_t sets = seen[r];
    if ((sets & m) != m) continue;
    const int s = bits_of_byte[sets & 255] + (wide ? bits_of_byte[sets >> 8] : 0);
    number[s]++;
    low[s] += spread[sets & 255];
    if (wide) high[s] += spread[sets >> 8];
  }
  for (index s = q; s <= p; s++)
    for (index k = 0; number[s] && k < 8; k++) {
      of_set[s][k] += (uint16_t)(low[s] >> 8 * k & 255);
      if (wide) of_set[s][k + 8] += (uint16_t)(high[s] >> 8 * k & 255);
    }
}

static void any_hits(const counting *c, const level *here, const uint64_t *seen, uint64_t m, index q,
                     hits *h) {
  const index p = here->sets;
  for (index s = q; s <= p; s++) {
    h->number[s] = 0.0;
    for (index k = 0; k < p; k++) h->of_set[s][k] = 0.0;
  }
  for (index r = 0; r < here->rows; r++) {
    if ((seen[r] & m) != m) continue;
    const double weight = c->weight ? c->weight[here->row ? here->row[r] : r] : 1.0;
    const int s = bits_of(seen[r]);
    h->number[s] += weight;
    for (index k = 0; k < p; k++) h->of_set[s][k] += seen[r] >> k & 1 ? weight : 0.0;
  }
}

/* C[m with j and k] of all pairs, in `change`, for the rows of `hits`. Those that hold sets outside of m are
 * in order of s in the scratch `row` (M). */
static void pair_hits(const counting *c, const level *here, const uint64_t *seen, uint64_t m, const hits *h,
                      double scale, uint32_t *row, double *change, index stride) {
  const index p = here->sets, q = bits_of(m);
  double inside = 0.0, with_one[MOST_SETS] = {0.0}, with_two[MOST_PAIRS] = {0.0}, count[MOST_PAIRS];
  index end[MOST_SETS + 1] = {0};
  for (index r = 0; r < here->rows; r++)
    if ((seen[r] & m) == m) end[bits_of(seen[r])]++;
  for (index s = q, n = 0; s <= p; s++) {
    n += end[s];
    end[s] = n - end[s];
  }
  for (index r = 0; r < here->rows; r++)
    if ((seen[r] & m) == m) row[end[bits_of(seen[r])]++] = (uint32_t)r;
  for (index s = q, i = 0; s <= p; s++) {
    if (i == end[s]) continue;
    const double *g = c->gains + (p - s) * GAINS + q;
    memset(count, 0, sizeof *count * (size_t)pair_at(0, p));
    for (; i < end[s]; i++) {
      const index r = (index)row[i];
      const double weight = c->weight ? c->weight[here->row ? here->row[r] : r] : 1.0;
      for (uint64_t left = seen[r] & ~m; left; left &= left - 1)
        for (uint64_t more = left & (left - 1); more; more &= more - 1)
          count[pair_at(__builtin_ctzll(left), __builtin_ctzll(more))] += weight;
    }
    if (q > 1) inside += h->number[s] * g[-2];
    for (index k = 0; q > 0 && k < p; k++) with_one[k] += h->of_set[s][k] * g[-1];
    for (index u = 0; u < pair_at(0, p); u++) with_two[u] += count[u] * g[0];
  }
  for (index k = 1, u = 0; k < p; k++)
    for (index j = 0; j < k; j++, u++) {
      const int j_in = m >> j & 1, k_in = m >> k & 1;
      const double C = j_in && k_in ? inside : j_in ? with_one[k] : k_in ? with_one[j] : with_two[u];
      change[u * stride] = C * scale;
    }
}

/* What a leaf of up to 16 sets gives to each of them, for rows that the sets m lack, by the background rows
 * that these hold. */
static void by_few_hits(const counting *c, const level *here, uint16_t m, double scale, double *change,
                        index stride) {
  const index p = here->sets, q = bits_of(m), width = p > 8 ? 16 : 8;
  double B[TABLE_SETS], A = 0.0, with_own = 0.0;
  uint16_t number[TABLE_SETS + 1], of_set[TABLE_SETS + 1][TABLE_SETS];
  const uint64_t none =
      (uint64_t)(int64_t)c->count[0]; /* zero, which compilers do not know: no loop is a memset */
  for (index k = 0; k < width; k++) B[k] = (double)none;
  for (index s = q; s <= p; s++) {
    number[s] = (uint16_t)none;
    for (index k = 0; k < width; k++) of_set[s][k] = (uint16_t)none;
  }
  for (index r = 0; r < here->rows; r += 255) {
    const index n = here->rows - r < 255 ? here->rows - r : 255;
    if (width == 8) add_hits(0, none, n, here->seen[0] + r, m, q, p, number, of_set);
    else add_hits(1, none, n, here->seen[0] + r, m, q, p, number, of_set);
  }
  for (index s = q; s <= p; s++) {
    if (!number[s]) continue;
    const double *g = c->gains + (p - s) * GAINS + q;
    A += number[s] * g[0];
    if (q > 0) with_own += number[s] * g[-1];
    for (index k = 0; k < width; k++) B[k] += of_set[s][k] * g[0];
  }
  for (index k = 0; k < p; k++) change[k * stride] = A * scale - (m >> k & 1 ? with_own : B[k]) * scale;
}

/* What any leaf gives to its sets or pairs, in the same way. */
static void by_hits(const counting *c, const level *here, const uint64_t *seen, uint64_t m, double scale,
                    uint32_t *row, double *change, index stride) {
  const index p = here->sets, q = bits_of(m);
  double B[MOST_SETS] = {0.0}, A = 0.0, with_own = 0.0;
  hits h;
  any_hits(c, here, seen, m, q, &h);
  for (index s = q; s <= p; s++) {
    if (h.number[s] == 0.0) continue;
    const double *g = c->gains + (p - s) * GAINS + q;
    A += h.number[s] * g[0];
    if (q > 0) with_own += h.number[s] * g[-1];
    for (index k = 0; k < p; k++) B[k] += h.of_set[s][k] * g[0];
  }
  for (index k = 0; k < p; k++) B[k] = (m >> k & 1 ? with_own : B[k]) * scale;
  if (c->order == 2) pair_hits(c, here, seen, m, &h, scale, row, change, stride);
  differences(c, p, A * scale, B, change, stride);
}

/* Rows to explain by the sets that lack them: the number of different m, each of them, and the one of each
 * row. Scratch: m (N + 1), and number (2^16), which comes and goes as zeros. */
static index classes(const visit *v, const level *here, uint64_t *m, uint32_t *of_row, uint32_t *number) {
  const index p = here->sets;
  const uint64_t full = ((uint64_t)1 << p) - 1;
  index n = 0;
  if (p > 16) {
    as_words(here->held, p, v->N, m);
    for (index r = 0; r < v->N; r++) {
      m[r] = full & ~m[r];
      of_row[r] = (uint32_t)r;
    }
    return v->N;
  }
  const uint16_t *held = here->held[0], all = (uint16_t)full;
  if ((index)full < 2 * v->N) { /* without waits: which there are, their numbers, those of rows */
    for (index r = 0; r < v->N; r++) number[(uint16_t)(all & ~held[r])] = 1;
    for (index b = 0; b <= (index)full; b++) {
      const uint32_t is_there = number[b];
      m[n] = (uint64_t)b;
      number[b] = (uint32_t)n;
      n += is_there;
    }
    for (index r = 0; r < v->N; r++) of_row[r] = number[(uint16_t)(all & ~held[r])];
    memset(number, 0, sizeof *number * (size_t)(full + 1));
    return n;
  }
  for (index r = 0; r < v->N; r++) {
    const uint16_t lacks = (uint16_t)(all & ~held[r]);
    if (!number[lacks]) {
      m[n] = lacks;
      number[lacks] = (uint32_t)++n;
    }
    of_row[r] = number[lacks] - 1;
  }
  for (index i = 0; i < n; i++) number[m[i]] = 0;
  return n;
}

#define TREES                                                                                                \
  index T, index K, index P, index M, index N, index depths, index most, index weighted, const index *roots, \
      const int32_t *column, const int32_t *right, const int32_t *codes, const double *number,               \
      const uint8_t *missing_left, const uint8_t *members, const int32_t *player, const uint16_t *bound,     \
      const uint16_t *ranks, const double *weight, const double *points, double total
#define VISIT                                                               \
  {.tree = {roots, column, right, codes, number, missing_left, members, K}, \
   .P = P,                                                                  \
   .M = M,                                                                  \
   .N = N,                                                                  \
   .player = player,                                                        \
   .bound = bound,                                                          \
   .ranks = ranks,                                                          \
   .points = points}

/* Arrays in scratch: `most` is the largest number of sets up to 16, and the number of words is
 * 32 depths + (depths (6 M + 2 N) + M + N) / 4 + (18 << most) + 512 + 2 M + 2 N + 2^15 + 3 2^12 + 9, and N
 * for each change of a leaf, at least 62 N. */
typedef struct {
  double *count, *cells, *table, *change;
  uint64_t *words, *m;
  uint32_t *of_row, *numbers, *row;
} arrays;

static arrays carve(visit *v, index depths, index most, uint64_t *scratch) {
  arrays a;
  const index M = v->M, N = v->N, larger = M > N ? M : N;
  v->at = (level *)scratch;
  v->right = (level *)(scratch + 16 * depths);
  v->space = (uint16_t *)(scratch + 32 * depths);
  v->zeros = v->space + depths * (6 * M + 2 * N);
  memset(v->zeros, 0, sizeof *v->zeros * (size_t)larger);
  scratch += 32 * depths + (depths * (6 * M + 2 * N) + larger) / 4 + 1;
  a.count = (double *)scratch;
  a.cells = a.count + (2 << most);
  a.words = (uint64_t *)(a.cells + (16 << most) + 512);
  a.m = a.words + M;
  a.table = (double *)(a.m + N + 1);
  a.of_row = (uint32_t *)(a.table + (3 << 12));
  a.row = a.of_row + N;
  a.numbers = a.row + M;
  a.change = (double *)a.of_row + (N + M + ((index)1 << most)) / 2 + 1;
  memset(a.numbers, 0, sizeof *a.numbers * ((size_t)1 << most));
  return a;
}

/* By the tables of a leaf. Scratch: held (p + 1, N). */
static void look_up(const visit *v, const level *here, index order, const double *A, double *phi,
                    double *held) {
  const index p = here->sets, N = v->N;
  const uint16_t full = (uint16_t)((1 << p) - 1), *own = here->held[0];
  const double *B = A + ((index)1 << p), *C = B + ((index)1 << p);
  for (index r = 0; r < N; r++) held[r] = A[full & ~own[r]];
  for (index k = 0; k < p; k++) {
    double *out = order == 1 ? phi + v->own[k] * N : held + (k + 1) * N;
    if (order == 1)
      for (index r = 0; r < N; r++) out[r] += held[r] - B[(full & ~own[r]) | 1 << k];
    else
      for (index r = 0; r < N; r++) out[r] = B[(full & ~own[r]) | 1 << k];
  }
  for (index k = 1; order == 2 && k < p; k++)
    for (index j = 0; j < k; j++) {
      const double *Bj = held + (j + 1) * N, *Bk = held + (k + 1) * N;
      double *out = phi + pair_of(v, j, k) * N;
      for (index r = 0; r < N; r++)
        out[r] += held[r] - (Bj[r] + Bk[r]) + C[(full & ~own[r]) | 1 << j | 1 << k];
    }
}

enum { PAIR_STEPS = 64 }; /* operations for the pairs of a row that m hits, in units of one for sets */

/* Adds results (n) to rows (N), each that of its class; two rows at once. */
static inline void add_by_class(index N, const uint32_t *restrict of_row, const double *restrict result,
                                double *restrict out) {
  index r = 0;
  for (; r + 1 < N; r += 2) {
    pair sum, more = {result[of_row[r]], result[of_row[r + 1]]};
    memcpy(&sum, out + r, sizeof sum);
    sum += more;
    memcpy(out + r, &sum, sizeof sum);
  }
  if (r < N) out[r] += result[of_row[r]];
}

/* Without a table, or with one for this leaf alone, whichever takes fewer operations. */
static void stream(const visit *v, const level *here, counting *c, const arrays *a, double scale,
                   double *phi) {
  const index p = here->sets, N = v->N, n = classes(v, here, a->m, a->of_row, a->numbers);
  const index n_changes = c->order == 1 ? p : pair_at(0, p);
  const index hits = here->rows * (c->order == 1 ? n : PAIR_STEPS * n);
  if (p <= TABLE_SETS && hits > 2 * here->rows + (p << p)) {
    over_supersets(c, here);
    if (p <= 12 && n * (n_changes + 1) > c->order << p) {
      vectors(c, p, scale, a->table);
      for (index j = 0; j < n; j++) by_vectors(c, a->table, p, (index)a->m[j], a->change + j, n);
    } else
      for (index j = 0; j < n; j++) by_counts(c, p, (index)a->m[j], scale, a->change + j, n);
  } else {
    const int few = p <= TABLE_SETS && !c->weight && c->order == 1;
    if (!few) as_words(here->seen, p, here->rows, a->words);
    for (index j = 0; j < n; j++)
      if (few) by_few_hits(c, here, (uint16_t)a->m[j], scale, a->change + j, n);
      else by_hits(c, here, a->words, a->m[j], scale, a->row, a->change + j, n);
  }
  const double *own = a->change;
  for (index k = 0; c->order == 1 && k < p; k++, own += n) {
    add_by_class(N, a->of_row, own, phi + v->own[k] * N);
  }
  for (index k = 1; c->order == 2 && k < p; k++)
    for (index j = 0; j < k; j++, own += n) {
      add_by_class(N, a->of_row, own, phi + pair_of(v, j, k) * N);
    }
}

/* Of T trees: makes the tables of leaf l (A and B, and of order 2 C, 2^p each) at place[l] (task 0), adds
 * what all leaves give by tables (1, without a background), or without them (2). That is A[m] - B[m with u]
 * to phi (P, N) for order 1, and A[m] - B[m with u] - B[m with v] + C[m with u and v] to pairs (P (P - 1) /
 * 2, N) for order 2. gains[n] is g(n + 1 - order, q). Rows have M weights if `weighted`, and are else fewer
 * than 2^16. */
EXPORT void propopt_shapley(TREES, index order, index task, const double *gains, const index *place,
                            double *tables, double *phi, uint64_t *scratch) {
  enum { MAKE, LOOK_UP, STREAM };
  visit v = VISIT;
  const arrays a = carve(&v, depths, task == LOOK_UP ? 0 : most, scratch);
  if (task != LOOK_UP) memset(a.count, 0, sizeof *a.count * ((size_t)2 << most));
  counting c = {order, weighted ? weight : NULL, gains, total, 0.0, a.count, a.cells, {{{0.0}}}};
  index leaf = 0;
  if (task != LOOK_UP) near_gains(&c);
  for (index t = 0; t < T; t++)
    for (index depth = 0, i = roots[t]; i < roots[t + 1];) {
      const level *here = enter(&v, i, depth, roots[t + 1]);
      if (column[i] >= 0 && (task != STREAM || here->rows > 0)) {
        i++;
        depth++;
        continue;
      }
      if (here->sets >= order && number[i] != 0.0) {
        const double scale = number[i] / total;
        if (task == MAKE) over_supersets(&c, here), vectors(&c, here->sets, scale, tables + place[leaf]);
        else if (task == LOOK_UP) look_up(&v, here, order, tables + place[leaf], phi, a.change);
        else if (here->rows > 0) stream(&v, here, &c, &a, scale, phi);
      }
      leaf++;
      i = behind(&v, here, &depth);
    }
}

/* Main effects of T trees. z of a set is the share of the background in all other sets of its leaf, and
 * `mean` (2, P) += value times the share in all of them, and the absolute values of all such terms. If
 * `by_cells`, cells (first[D]) of each column += value z: those of numbers between its cuts at first[j], as
 * differences of neighbours with one more at the end, then that of NaN; or those of its codes. Otherwise
 * G (P, N) += value z for rows to explain in the set.
 * `cut` is the number of each node's threshold among those of its column, from 1. */
EXPORT void propopt_effects(TREES, index by_cells, const int32_t *cut, const index *first, double *cells,
                            double *mean, double *G, uint64_t *scratch) {
  visit v = VISIT;
  const nodes *tree = &v.tree;
  const arrays a = carve(&v, depths, most, scratch);
  memset(a.count, 0, sizeof *a.count * ((size_t)2 << most));
  v.alone = 1;
  for (index t = 0; t < T; t++)
    for (index depth = 0, i = roots[t]; i < roots[t + 1];) {
      const level *here = enter(&v, i, depth, roots[t + 1]);
      if (column[i] >= 0 && here->rows > 0) {
        i++;
        depth++;
        continue;
      }
      const index p = here->rows > 0 ? here->sets : 0;
      const uint64_t full = ((uint64_t)1 << p) - 1;
      double inside = 0.0, others[MOST_SETS] = {0.0};
      as_words(here->seen, p, here->rows, a.words);
      for (index r = 0; p > 0 && r < here->rows; r++) {
        const uint64_t lacks = full & ~a.words[r];
        const double own = weighted ? weight[here->row ? here->row[r] : r] : 1.0;
        if (!lacks) inside += own;
        else if (!(lacks & (lacks - 1))) others[__builtin_ctzll(lacks)] += own;
      }
      as_words(here->held, p, N, a.m);
      for (index k = 0; k < p; k++) {
        const index j = v.own[k];
        const double effect = (inside + others[k]) * (number[i] / total);
        const double of_all = inside * (number[i] / total);
        mean[j] += of_all;
        mean[P + j] += (effect < 0.0 ? -effect : effect) + (of_all < 0.0 ? -of_all : of_all);
        for (index r = 0; r < N; r++) G[j * N + r] += a.m[r] >> k & 1 ? effect : 0.0;
        if (!by_cells) continue;
        int32_t low = 0, high = (int32_t)(first[j + 1] - first[j]) - 2;
        int missing = 1, coded = 0;
        for (index d = 0; d < depth; d++) {
          const index node = v.at[d].node;
          const int is_right = v.at[d + 1].node != node + 1;
          if (column[node] != j) continue;
          coded |= codes[node] >= 0;
          missing &= missing_left[node] != is_right;
          if (is_right && cut[node] > low) low = cut[node];
          if (!is_right && cut[node] < high) high = cut[node];
        }
        if (!coded && low < high) {
          cells[first[j] + low] += effect;
          cells[first[j] + high] -= effect;
        }
        if (!coded && missing) cells[first[j + 1] - 1] += effect;
        for (index code = 0; coded && code < first[j + 1] - first[j]; code++) {
          int in = 1;
          for (index d = 0; d < depth; d++)
            if (column[v.at[d].node] == j)
              in &= goes_left(tree, v.at[d].node, (double)code) == (v.at[d + 1].node == v.at[d].node + 1);
          if (in) cells[first[j] + code] += effect;
        }
      }
      i = behind(&v, here, &depth);
    }
}

/* ---- Path-dependent values of trees: structures/boxes/path_dependent.py says what is computed */

enum { LANES = 32 }; /* rows with different sets, or leaves of as many sets, that are treated at once */

typedef double lanes[LANES];

typedef struct {
  index p, q;                    /* sets, nodes of quadrature */
  const double *nodes, *weights; /* of quadrature */
  lanes value, share[MOST_SETS]; /* of leaves, and of their sets */
  lanes inside[MOST_SETS];       /* 1 where a set holds the row, else 0 */
  lanes factor[MOST_SETS];       /* of each set, for one node of quadrature */
  lanes front[MOST_SETS];        /* the weight times the factors before each */
} integrand;

static inline void factors(integrand *f, index i, index n) {
  const double t = f->nodes[i], rest = 1.0 - t;
  for (index c = 0; c < n; c++) f->front[0][c] = f->weights[i];
  for (index k = 0; k < f->p; k++) {
    for (index c = 0; c < n; c++) f->factor[k][c] = f->share[k][c] * rest + t * f->inside[k][c];
    for (index c = 0; c < n && k + 1 < f->p; c++) f->front[k + 1][c] = f->front[k][c] * f->factor[k][c];
  }
}

/* Values (p, n). */
static inline void path_values(integrand *restrict f, index n, double *restrict change, index stride) {
  lanes behind;
  for (index k = 0; k < f->p; k++)
    for (index c = 0; c < n; c++) change[k * stride + c] = 0.0;
  for (index i = 0; i < f->q; i++) {
    factors(f, i, n);
    for (index c = 0; c < n; c++) behind[c] = 1.0;
    for (index k = f->p - 1; k >= 0; k--)
      for (index c = 0; c < n; c++) {
        change[k * stride + c] += f->front[k][c] * behind[c];
        behind[c] *= f->factor[k][c];
      }
  }
  for (index k = 0; k < f->p; k++)
    for (index c = 0; c < n; c++) change[k * stride + c] *= f->value[c] * (f->inside[k][c] - f->share[k][c]);
}

/* Interactions (p (p - 1) / 2, n) of the pairs of sets. */
static inline void path_pairs(integrand *restrict f, index n, double *restrict change, index stride) {
  lanes behind[MOST_SETS], between;
  const index p = f->p;
  for (index k = 0; k < p * (p - 1) / 2; k++)
    for (index c = 0; c < n; c++) change[k * stride + c] = 0.0;
  for (index i = 0; i < f->q; i++) {
    factors(f, i, n);
    for (index c = 0; c < n; c++) behind[p - 1][c] = 1.0;
    for (index k = p - 1; k > 0; k--)
      for (index c = 0; c < n; c++) behind[k - 1][c] = behind[k][c] * f->factor[k][c];
    double *out = change;
    for (index u = 0; u < p; u++) {
      for (index c = 0; c < n; c++) between[c] = f->front[u][c];
      for (index w = u + 1; w < p; w++, out += stride)
        for (index c = 0; c < n; c++) {
          out[c] += between[c] * behind[w][c];
          between[c] *= f->factor[w][c];
        }
    }
  }
  for (index u = 0; u < p; u++)
    for (index w = u + 1; w < p; w++, change += stride)
      for (index c = 0; c < n; c++)
        change[c] *= f->value[c] * (f->inside[u][c] - f->share[u][c]) * (f->inside[w][c] - f->share[w][c]);
}

static inline void integrals(integrand *f, index order, const double *rule, index most_nodes, index n,
                             double *change, index stride) {
  f->q = (f->p - order) / 2 + 1;
  f->nodes = rule + (f->q - 1) * 2 * most_nodes;
  f->weights = f->nodes + most_nodes;
  if (order == 2) path_pairs(f, n, change, stride);
  else path_values(f, n, change, stride);
}

/* The row of the result of set u, or of sets u and w. */
static inline index row_of(index P, index order, const int32_t *own, index u, index w) {
  const index first = own[u] < own[w] ? own[u] : own[w], last = own[u] + own[w] - first;
  return order == 2 ? first * (2 * P - first - 1) / 2 + last - first - 1 : own[u];
}

/* Adds path-dependent values of T trees to phi (P, N), or, of `order` 2, their interactions to phi (P (P - 1)
 * / 2, N), one row for each pair of players. share (nodes) is that of the training rows at its parent; rule
 * (q, 2, q) has nodes and weights of quadrature by q = 1, 2, ... up to `most_nodes`. change: numbers (p or p
 * (p - 1) / 2, N) of the longest path. */
EXPORT void propopt_path_dependent(TREES, index order, const double *share, index most_nodes,
                                   const double *rule, double *change, double *phi, uint64_t *scratch) {
  visit v = VISIT;
  integrand f;
  (void)weight, (void)weighted, (void)total;
  const arrays a = carve(&v, depths, most, scratch);
  for (index t = 0; t < T; t++)
    for (index depth = 0, i = roots[t]; i < roots[t + 1];) {
      const level *here = enter(&v, i, depth, roots[t + 1]);
      if (column[i] >= 0) {
        i++;
        depth++;
        continue;
      }
      const index p = here->sets;
      if (p >= order && number[i] != 0.0) {
        double product[MOST_SETS];
        f.p = p;
        for (index k = 0; k < p; k++) product[k] = 1.0;
        for (index d = 0, k; d < depth; d++) {
          for (k = 0; v.own[k] != player[column[v.at[d].node]];) k++;
          product[k] *= share[v.at[d + 1].node];
        }
        const index n = classes(&v, here, a.m, a.of_row, a.numbers);
        for (index c = 0; c < n; c += LANES) {
          const index some = n - c < LANES ? n - c : LANES;
          for (index j = 0; c == 0 && j < some; j++) f.value[j] = number[i];
          for (index k = 0; k < p; k++)
            for (index j = 0; j < some; j++) {
              f.share[k][j] = product[k];
              f.inside[k][j] = (double)(~a.m[c + j] >> k & 1);
            }
          integrals(&f, order, rule, most_nodes, some, change + c, n);
        }
        const double *own = change;
        for (index u = 0; u < p; u++)
          for (index w = u + order - 1; w < (order == 2 ? p : u + 1); w++, own += n) {
            add_by_class(N, a.of_row, own, phi + row_of(P, order, v.own, u, w) * N);
          }
      }
      i = behind(&v, here, &depth);
    }
}

/* What leaves give to any row: the product of shares of each set, from first[l] (L + 1) on, and the row of
 * the result for each set or pair, from start[l] (L + 1) on. For each node, counted from the first, its
 * parent, itself at roots, and the set that it is in by the column of its parent, with 64 more for a new one.
 * Scratch: 4 depths + P words. */
EXPORT void propopt_path_sets(index T, index P, index depths, index order, const index *roots,
                              const int32_t *column, const int32_t *right, const int32_t *player,
                              const double *share, const index *first, const index *start, int32_t *parent,
                              uint8_t *set, double *product, int32_t *row, uint64_t *scratch) {
  typedef struct {
    index node, set, sets; /* the set by the column of its parent; sets so far */
    double product;        /* of the shares in this set */
  } place;
  place *at = (place *)scratch;
  index *last = (index *)(at + depths), leaf = 0; /* of each player: the last set that it had */
  int32_t own[MOST_SETS];
  memset(last, 0, sizeof *last * (size_t)P);
  for (index t = 0; t < T; t++)
    for (index depth = 0, i = roots[t]; i < roots[t + 1]; i++) {
      while (depth > 0 && at[depth - 1].node + 1 != i && right[at[depth - 1].node] != i) depth--;
      place *here = at + depth, *above = here - (depth > 0);
      int is_new = 0;
      if (depth == 0) *here = (place){i, 0, 0, 1.0};
      else {
        const int32_t of_node = player[column[above->node]];
        /* a subtree to the left may have had it */
        is_new = last[of_node] >= above->sets || own[last[of_node]] != of_node;
        const index k = is_new ? above->sets : last[of_node];
        const place *d = above;
        while (!is_new && d->set != k) d--;
        *here = (place){i, k, above->sets + is_new, is_new ? share[i] : d->product * share[i]};
        own[k] = of_node;
        last[of_node] = k;
      }
      parent[i - roots[0]] = (int32_t)(above->node - roots[0]);
      set[i - roots[0]] = (uint8_t)(here->set | is_new << 6);
      if (column[i] >= 0) {
        depth++;
        continue;
      }
      const index p = first[leaf + 1] - first[leaf];
      for (index d = 1; p > 0 && d <= depth; d++) product[first[leaf] + at[d].set] = at[d].product;
      int32_t *to = row + start[leaf++];
      for (index u = 0; u < p; u++)
        for (index w = u + order - 1; w < (order == 2 ? p : u + 1); w++)
          *to++ = (int32_t)row_of(P, order, own, u, w);
    }
}

/* The same for one row x (D) and consecutive nodes with L leaves, by what leaves give to any row. `leaves`
 * has those of equal numbers of sets beside each other. Scratch: nodes + 1 + L words, and numbers for all
 * terms of leaves, and for those of 8 leaves with the most. */
EXPORT void propopt_path_row(index root, index end, index L, index K, index order, const int32_t *column,
                             const int32_t *codes, const double *number, const uint8_t *missing_left,
                             const uint8_t *members, const int32_t *parent, const uint8_t *set,
                             const index *leaves, const double *value, const index *first, const index *start,
                             const double *product, const int32_t *row, const double *x, index most_nodes,
                             const double *rule, double *phi, uint64_t *scratch) {
  enum { LEAVES = 8, LEFT = 63 }; /* leaves at once; the bit of rows that go left at a node */
  const nodes tree = {NULL, column, NULL, codes, number, missing_left, members, K};
  const uint64_t sets = ((uint64_t)1 << LEFT) - 1;
  uint64_t *held = scratch, *of_leaf = held + (end - root); /* the sets that hold the row */
  double *change = (double *)(of_leaf + L + 1);
  for (index i = 0, l = 0; i < end - root; i++) { /* without branches, of which half would be a surprise */
    const uint64_t above = parent[i] == i ? 0 : held[parent[i]];
    const uint64_t outside = (above >> LEFT) != (uint64_t)(i == parent[i] + 1);
    const int k = set[i] & 63;
    const uint64_t own = ((above & sets) | (uint64_t)(set[i] >> 6) << k) & ~(outside << k);
    const index node = root + i;
    const int is_leaf = column[node] < 0;
    const double z = x[is_leaf ? 0 : column[node]], cut = number[node];
    const int left =
        codes[node] < 0 ? (z <= cut) | ((z != z) & missing_left[node]) : goes_left(&tree, node, z);
    held[i] = own | (uint64_t)left << LEFT;
    of_leaf[l] = own;
    l += is_leaf;
  }
  const index n_changes = start[L];
  integrand f;
  for (index e = 0, n; e < L; e += n) {
    const index *l = leaves + e;
    f.p = first[*l + 1] - first[*l];
    for (n = 1; n < LEAVES && e + n < L && first[l[n] + 1] - first[l[n]] == f.p;) n++;
    if (f.p < order) continue;
    for (index c = 0; c < LEAVES; c++) {
      const index of_lane = l[c < n ? c : 0];
      f.value[c] = value[of_lane];
      for (index k = 0; k < f.p; k++) {
        f.share[k][c] = product[first[of_lane] + k];
        f.inside[k][c] = (double)(of_leaf[of_lane] >> k & 1);
      }
    }
    const index n_terms = start[*l + 1] - start[*l];
    double *own = change + n_changes;
    integrals(&f, order, rule, most_nodes, LEAVES, own, LEAVES);
    for (index c = 0; c < n; c++)
      for (index u = 0; u < n_terms; u++) change[start[l[c]] + u] = own[u * LEAVES + c];
  }
  for (index u = 0; u < n_changes; u++) phi[row[u]] += change[u];
}
