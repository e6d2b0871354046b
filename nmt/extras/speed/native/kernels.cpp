// Operations of a search between its matrix products, each in one pass over memory.
//
// A row of a result is computed only from its own row of the input, and in an order that does not depend on other rows:
// a sentence does not depend on its batch. Shapes are as in Python: N rows, H heads,
// S positions, A width of a head, I inputs, O outputs, D width of a state. Loops are written for the compiler to
// vectorise.

#include <cstdint>
#include <cstring>
#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

#if defined(__AVX__)
#include <immintrin.h>
#endif

#if defined(__AVX512VNNI__) && defined(__AVX512BW__) && defined(__AVX512VL__)
#define HAS_VNNI
#endif

namespace {

struct bfloat16 {
    uint16_t bits;
};

// The bytes at a place, which need not be aligned, as a number of another type.
template <typename Number>
inline Number read(const void* place) {
    Number number;
    std::memcpy(&number, place, sizeof number);
    return number;
}

inline float wide(float x) { return x; }

inline float wide(bfloat16 x) {
    const uint32_t bits = static_cast<uint32_t>(x.bits) << 16;
    return read<float>(&bits);
}

inline void narrow(float value, float& to) { to = value; }

inline void narrow(float value, bfloat16& to) {  // to the nearest, ties to even
    const uint32_t bits = read<uint32_t>(&value);
    to.bits = static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

// exp(x) = 2^n (1 + p), p = exp(r) - 1 with |r| <= log(2) / 2 as a Taylor polynomial, whose rest is below 2e-9.
inline float exp_of(float x) {
    x = x < -87.0f ? -87.0f : x > 88.0f ? 88.0f : x;
    const float n = std::nearbyint(x * 1.44269504f);
    const float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;  // log 2 in two parts
    float p = 1.0f / 5040.0f;
    p = p * r + 1.0f / 720.0f;
    p = p * r + 1.0f / 120.0f;
    p = p * r + 1.0f / 24.0f;
    p = p * r + 1.0f / 6.0f;
    p = p * r + 0.5f;
    p = p * r * r + r;
    const int32_t bits = (static_cast<int32_t>(n) + 127) << 23;
    const float power = read<float>(&bits);
    return power + power * p;
}

// x P(x^2) / Q(x^2), fitted by least squares of the relative error, reweighted until its largest value was least: 2e-8 on
// |x| <= 9, from where on tanh is 1; 4e-7 with the rounding of float32.
inline float tanh_of(float x) {
    x = x < -9.0f ? -9.0f : x > 9.0f ? 9.0f : x;
    const float y = x * x;
    float p = 1.33548344e-8f;
    p = p * y + 2.06092159e-5f;
    p = p * y + 3.49559661e-3f;
    p = p * y + 1.33810329e-1f;
    p = p * y + 9.99999979e-1f;
    float q = 7.77663168e-7f;
    q = q * y + 3.28564844e-4f;
    q = q * y + 2.58770148e-2f;
    q = q * y + 4.67143485e-1f;
    q = q * y + 1.0f;
    const float t = x * p / q;
    return t < -1.0f ? -1.0f : t > 1.0f ? 1.0f : t;
}

// Sums stay in registers only if all their indices are constants.
#define UNROLLED _Pragma("GCC unroll 8")
#define ALWAYS_INLINE __attribute__((always_inline)) inline

// Loops over positions run to a multiple of it: the rest of a vector takes longer than a vector.
constexpr int64_t LANES = 16;

// In place, over a multiple of LANES; a position whose `seen` is 0 gets a weight of exactly 0, others have 1.
inline void softmax(float* scores, const float* seen, int64_t positions) {
    float most = -INFINITY, sum = 0.0f;
#pragma omp simd reduction(max : most)
    for (int64_t s = 0; s < positions; ++s) {
        const float score = seen[s] > 0.0f ? scores[s] : -INFINITY;
        most = score > most ? score : most;
    }
#pragma omp simd reduction(+ : sum)
    for (int64_t s = 0; s < positions; ++s) {
        scores[s] = seen[s] > 0.0f ? exp_of(scores[s] - most) : 0.0f;
        sum += scores[s];
    }
    const float scale = 1.0f / sum;
#pragma omp simd
    for (int64_t s = 0; s < positions; ++s) scores[s] = seen[s] > 0.0f ? scores[s] * scale : 0.0f;
}

// Context of one head of one query; key(s) and value(s) point to those of a position.
template <typename T, typename Key, typename Value>
inline void attend_head(const T* q, const Key& key, const Value& value, const float* seen, float* scores, float* sums,
                 T* context, int64_t positions, int64_t width, float scale) {
    for (int64_t s = 0; s < positions; ++s) {
        const T* const k = key(s);
        float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
        for (int64_t a = 0; a < width; ++a) sum += wide(q[a]) * wide(k[a]);
        scores[s] = sum * scale;
    }
    softmax(scores, seen, (positions + LANES - 1) / LANES * LANES);
    for (int64_t a = 0; a < width; ++a) sums[a] = 0.0f;
    for (int64_t s = 0; s < positions; ++s) {
        const T* const v = value(s);
        const float weight = scores[s];
#pragma omp simd
        for (int64_t a = 0; a < width; ++a) sums[a] += weight * wide(v[a]);
    }
    for (int64_t a = 0; a < width; ++a) narrow(sums[a], context[a]);
}

template <typename T>
void attend(const T* query, int64_t query_row, int64_t query_head, const T* keys, const T* values,
                 int64_t memory_row, int64_t memory_head, int64_t memory_position, const uint8_t* hidden, T* context,
                 int64_t rows, int64_t beams, int64_t heads, int64_t positions, int64_t width, float scale) {
    const int64_t padded = (positions + LANES - 1) / LANES * LANES;
    std::vector<float> buffer(2 * padded + width);
    float *const scores = buffer.data(), *const seen = scores + padded, *const sums = seen + padded;
    for (int64_t s = 0; s < positions; ++s) seen[s] = 1.0f;
    for (int64_t n = 0; n < rows; ++n) {
        const int64_t sentence = n / beams;
        if (hidden && n % beams == 0) {
            for (int64_t s = 0; s < positions; ++s) seen[s] = hidden[sentence * positions + s] ? 0.0f : 1.0f;
        }
        for (int64_t h = 0; h < heads; ++h) {
            const int64_t start = sentence * memory_row + h * memory_head;
            attend_head(
                query + n * query_row + h * query_head, [=](int64_t s) { return keys + start + s * memory_position; },
                [=](int64_t s) { return values + start + s * memory_position; }, seen, scores, sums,
                context + (n * heads + h) * width, positions, width, scale);
        }
    }
}

// The positions are earlier steps; a row comes from row `backpointers` of each. A row of a step has keys and then
// values at its end, those of each head side by side.
template <typename T>
void attend_to_steps(const T* query, int64_t query_row, const T* const* steps, int64_t step_row,
                        const int64_t* backpointers, T* context, int64_t rows, int64_t heads, int64_t positions,
                        int64_t width, float scale) {
    const int64_t padded = (positions + LANES - 1) / LANES * LANES, of_values = step_row - heads * width;
    const int64_t of_keys = of_values - heads * width;
    std::vector<float> buffer(2 * padded + width);
    std::vector<const T*> row_buffer(positions);
    float *const scores = buffer.data(), *const seen = scores + padded, *const sums = seen + padded;
    const T** const row_of = row_buffer.data();
    for (int64_t s = 0; s < positions; ++s) seen[s] = 1.0f;
    for (int64_t n = 0; n < rows; ++n) {
        for (int64_t s = 0; s < positions; ++s) row_of[s] = steps[s] + backpointers[n * positions + s] * step_row;
        for (int64_t h = 0; h < heads; ++h) {
            attend_head(
                query + n * query_row + h * width, [=](int64_t s) { return row_of[s] + of_keys + h * width; },
                [=](int64_t s) { return row_of[s] + of_values + h * width; }, seen, scores, sums,
                context + (n * heads + h) * width, positions, width, scale);
        }
    }
}

// Divisor of a row that gives integers from -127 to 127; NaN if the row has one.
template <typename T>
inline float step(const T* row, int64_t inputs) {
    float most = 0.0f;
    int32_t is_lost = 0;
#pragma omp simd reduction(max : most) reduction(| : is_lost)
    for (int64_t i = 0; i < inputs; ++i) {
        const float size = std::fabs(wide(row[i]));
        most = size > most ? size : most;
        is_lost |= size != size;
    }
    if (is_lost) return NAN;
    return most / 127.0f < 1.17549435e-38f ? 1.17549435e-38f : most / 127.0f;
}

// Integers of one row, each raised by RAISED; returns the divisor.
template <int RAISED, typename T, typename Integer>
inline float quantize_row(const T* row, Integer* to, int64_t inputs) {
    const float divisor = step(row, inputs), inverse = 1.0f / divisor;
#pragma omp simd
    for (int64_t i = 0; i < inputs; ++i) {
        to[i] = static_cast<Integer>(static_cast<int32_t>(std::nearbyint(wide(row[i]) * inverse)) + RAISED);
    }
    return divisor;
}

template <typename T>
void quantize(const T* x, int8_t* values, float* scale, int64_t rows, int64_t inputs) {
    for (int64_t n = 0; n < rows; ++n) scale[n] = quantize_row<0>(x + n * inputs, values + n * inputs, inputs);
}

// Rows as the factors of `tile`.
struct IntegerRows {
#ifdef HAS_VNNI  // it multiplies unsigned by signed bytes: rows are raised, and sums start at `shift`, which undoes that
    using Integer = uint8_t;
    static constexpr int RAISED = 128;
#else
    using Integer = int16_t;
    static constexpr int RAISED = 0;
#endif
    std::vector<Integer> values;
    std::vector<float> scale;

    // The same as quantize, and zeros up to the stride.
    template <typename T>
    void round(const T* x, int64_t rows, int64_t inputs, int64_t stride) {
        values.resize(rows * stride);
        scale.resize(rows);
        for (int64_t n = 0; n < rows; ++n) {
            Integer* const to = values.data() + n * stride;
            scale[n] = quantize_row<RAISED>(x + n * inputs, to, inputs);
            for (int64_t i = inputs; i < stride; ++i) to[i] = 0;
        }
    }
};

// The outputs of a row from its products of integers.
template <typename T>
inline void scale_row(const int32_t* product, float row_scale, const float* output_scale, const T* bias, T* to,
                      bool onto, int64_t outputs) {
#pragma omp simd
    for (int64_t o = 0; o < outputs; ++o) {
        float value = static_cast<float>(product[o]) * (row_scale * output_scale[o]);
        if (bias) value += wide(bias[o]);
        if (onto) value += wide(to[o]);
        narrow(value, to[o]);
    }
}

// The product of integers, scaled.
//
// A weight is packed for it in Python: blocks of BLOCK outputs, in each of them quads of inputs, in each of them the
// quad of every output; missing inputs and outputs are 0, in shift too.
constexpr int64_t BLOCK = 64, QUAD = 4;

// The sums of ROWS rows and one block of outputs. Not inlined, and with nothing but the product: next to anything else
// compilers run out of registers, keep sums in memory, and take twice as long.
#ifdef HAS_VNNI
template <int ROWS>
__attribute__((noinline)) void tile(const uint8_t* x, int64_t stride, const int8_t* weight, const int32_t* shift,
                                    int64_t quads, int32_t (*to)[BLOCK]) {
    constexpr int64_t VECTORS = BLOCK / LANES;
    __m512i sums[ROWS][VECTORS];
    UNROLLED for (int v = 0; v < VECTORS; ++v) {
        const __m512i start = _mm512_loadu_si512(shift + v * LANES);
        UNROLLED for (int r = 0; r < ROWS; ++r) sums[r][v] = start;
    }
    for (int64_t q = 0; q < quads; ++q) {
        __m512i of_quad[VECTORS];
        UNROLLED for (int v = 0; v < VECTORS; ++v) of_quad[v] = _mm512_loadu_si512(weight + (q * VECTORS + v) * 64);
        UNROLLED for (int r = 0; r < ROWS; ++r) {
            const __m512i everywhere = _mm512_set1_epi32(read<int32_t>(x + r * stride + q * QUAD));
            UNROLLED for (int v = 0; v < VECTORS; ++v)
                sums[r][v] = _mm512_dpbusd_epi32(sums[r][v], everywhere, of_quad[v]);
        }
    }
    UNROLLED for (int r = 0; r < ROWS; ++r) {
        UNROLLED for (int v = 0; v < VECTORS; ++v) _mm512_storeu_si512(to[r] + v * LANES, sums[r][v]);
    }
}
#elif defined(__AVX2__)
template <int ROWS>
__attribute__((noinline)) void tile(const int16_t* x, int64_t stride, const int8_t* weight, const int32_t*,
                                    int64_t quads, int32_t (*to)[BLOCK]) {
    constexpr int64_t VECTORS = ROWS == 1 ? 8 : ROWS <= 3 ? 4 : 2, OUTPUTS = 4;  // of the 16 registers, 8 to 12 for sums
    for (int64_t first = 0; first < BLOCK; first += VECTORS * OUTPUTS) {
        __m256i sums[ROWS][VECTORS] = {};  // two sums of each output, side by side
        for (int64_t q = 0; q < quads; ++q) {
            __m256i of_quad[ROWS];
            UNROLLED for (int r = 0; r < ROWS; ++r)
                of_quad[r] = _mm256_set1_epi64x(read<int64_t>(x + r * stride + q * QUAD));
            UNROLLED for (int v = 0; v < VECTORS; ++v) {
                const int8_t* const from = weight + (q * BLOCK + first + v * OUTPUTS) * QUAD;
                const __m256i w = _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
                UNROLLED for (int r = 0; r < ROWS; ++r)
                    sums[r][v] = _mm256_add_epi32(sums[r][v], _mm256_madd_epi16(of_quad[r], w));
            }
        }
        UNROLLED for (int r = 0; r < ROWS; ++r) {
            UNROLLED for (int v = 0; v < VECTORS; v += 2) {
                const __m256i both = _mm256_hadd_epi32(sums[r][v], sums[r][v + 1]);  // outputs 0 1 4 5 2 3 6 7
                __m256i* const at = reinterpret_cast<__m256i*>(to[r] + first + v * OUTPUTS);
                _mm256_storeu_si256(at, _mm256_permute4x64_epi64(both, 0xd8));
            }
        }
    }
}
#endif

constexpr int64_t TILE = 6;  // rows; with AVX-512 four vectors of sums for each: 24 of the 32 registers
constexpr int64_t TOGETHER = 16 * TILE;  // rows whose results stay in the cache until all their blocks are done

template <typename T>
void product(const T* x, const int8_t* weight, const int32_t* shift, const float* output_scale, const T* bias, T* out,
             bool onto, int64_t rows, int64_t inputs, int64_t outputs) {
#ifdef __AVX2__
    constexpr decltype(&tile<1>) TILES[TILE] = {tile<1>, tile<2>, tile<3>, tile<4>, tile<5>, tile<TILE>};
    static thread_local IntegerRows integers;
    const int64_t quads = (inputs + QUAD - 1) / QUAD, stride = quads * QUAD;
    integers.round(x, rows, inputs, stride);
    int32_t sums[TILE][BLOCK];
    for (int64_t start = 0; start < rows; start += TOGETHER) {
        const int64_t end = std::min(rows, start + TOGETHER);
        for (int64_t first = 0; first < outputs; first += BLOCK) {
            for (int64_t n = start; n < end; n += TILE) {
                const int64_t count = std::min(end - n, TILE);
                TILES[count - 1](integers.values.data() + n * stride, stride, weight + first * stride, shift + first,
                                 quads, sums);
                for (int64_t r = 0; r < count; ++r) {
                    scale_row(sums[r], integers.scale[n + r], output_scale + first, bias ? bias + first : nullptr,
                              out + (n + r) * outputs + first, onto, std::min(BLOCK, outputs - first));
                }
            }
        }
    }
#endif
}

template <typename T>
void dequantize(const int32_t* product, const float* row_scale, const float* output_scale, const T* bias, T* out,
                bool onto, int64_t rows, int64_t outputs) {
    for (int64_t n = 0; n < rows; ++n) {
        const int64_t start = n * outputs;
        scale_row(product + start, row_scale[n], output_scale, bias, out + start, onto, outputs);
    }
}

template <typename T>
void additive(const T* query, const T* keys, const T* v, T* scores, int64_t rows, int64_t beams, int64_t positions,
              int64_t width) {
    for (int64_t n = 0; n < rows; ++n) {
        const T* const q = query + n * width;
        for (int64_t s = 0; s < positions; ++s) {
            const T* const k = keys + ((n / beams) * positions + s) * width;
            float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
            for (int64_t a = 0; a < width; ++a) sum += wide(v[a]) * tanh_of(wide(q[a]) + wide(k[a]));
            narrow(sum, scores[n * positions + s]);
        }
    }
}

// The largest entries of each row, largest first, equal ones in their order. Blocks of entries below the least one so
// far are skipped.
template <typename T>
void largest(const T* x, float* values, int64_t* indices, int64_t rows, int64_t tokens, int64_t count) {
    constexpr int64_t LENGTH = 4 * LANES;
    for (int64_t n = 0; n < rows; ++n) {
        const T* const row = x + n * tokens;
        float* const value = values + n * count;
        int64_t* const index_of = indices + n * count;
        int64_t size = 0;
        for (int64_t start = 0; start < tokens; start += LENGTH) {
            const int64_t end = start + LENGTH < tokens ? start + LENGTH : tokens;
            if (size == count) {
                const float least = std::max(value[count - 1], -std::numeric_limits<float>::max());  // not -inf
                int32_t is_any = 0;
#pragma omp simd reduction(| : is_any)
                for (int64_t v = start; v < end; ++v) is_any |= wide(row[v]) >= least;
                if (!is_any) continue;
            }
            for (int64_t v = start; v < end; ++v) {
                const float entry = wide(row[v]);
                if (size == count && !(entry > value[count - 1])) continue;
                int64_t at = size < count ? size++ : count - 1;
                for (; at > 0 && entry > value[at - 1]; --at) {
                    value[at] = value[at - 1];
                    index_of[at] = index_of[at - 1];
                }
                value[at] = entry;
                index_of[at] = v;
            }
        }
    }
}

template <typename T>
void log_normalizer(const T* logits, float* result, int64_t rows, int64_t tokens) {
    for (int64_t n = 0; n < rows; ++n) {
        const T* const row = logits + n * tokens;
        float most = -INFINITY;
#pragma omp simd reduction(max : most)
        for (int64_t v = 0; v < tokens; ++v) {
            const float logit = wide(row[v]);
            most = logit > most ? logit : most;
        }
        if (std::isinf(most)) {
            result[n] = most;
            continue;
        }
        float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
        for (int64_t v = 0; v < tokens; ++v) sum += exp_of(wide(row[v]) - most);
        result[n] = most + std::log(sum);
    }
}

// A hidden Markov model's posterior, sentence by sentence; see nmt/extras/aligner/hmm.py, whose Python computes the
// same. States are positions of the one side, times are those of the other. Rows of states are padded to LANES with 0.
typedef float Vector __attribute__((vector_size(4 * LANES), aligned(4), may_alias));

inline Vector& vector_at(float* p) { return *reinterpret_cast<Vector*>(p); }
inline Vector vector_at(const float* p) { return *reinterpret_cast<const Vector*>(p); }

inline float sum_of(Vector v) {
    float sum = 0.0f;
    for (int64_t lane = 0; lane < LANES; ++lane) sum += v[lane];
    return sum;
}

// out[s] = sum over x of weight[x] table[s - x] for BLOCKS vectors of s: sums stay in registers.
template <int BLOCKS>
inline void convolve_block(const float* weight, int64_t states, const float* table, float* out) {
    Vector sums[BLOCKS] = {};
    for (int64_t x = 0; x < states; ++x) {
        const Vector w = Vector{} + weight[x];
        UNROLLED
        for (int b = 0; b < BLOCKS; ++b) sums[b] += w * vector_at(table - x + LANES * b);
    }
    for (int b = 0; b < BLOCKS; ++b) vector_at(out + LANES * b) = sums[b];
}

inline void convolve(const float* weight, int64_t states, const float* table, float* out, int64_t padded) {
    int64_t s = 0;
    for (; s + 4 * LANES <= padded; s += 4 * LANES) convolve_block<4>(weight, states, table + s, out + s);
    for (; s < padded; s += LANES) convolve_block<1>(weight, states, table + s, out + s);
}

struct JumpTables {
    int64_t reach, centre;
    std::vector<float> jump, reversed, before, first, first_before;  // probabilities by distance, and their running sums
    std::vector<float> jumps, firsts;                                // expected numbers

    JumpTables(const float* jump_J, const float* first_W1, int64_t reach, int64_t longest)
        : reach(reach), centre(longest + LANES) {
        const int64_t size = 2 * (centre + LANES);
        jump.resize(size), reversed.resize(size), before.resize(size + 1), jumps.resize(size);
        first.resize(centre + LANES), first_before.resize(first.size() + 1), firsts.resize(first.size());
        for (int64_t i = 0; i < size; ++i) {
            const int64_t distance = std::max(-reach, std::min(reach, i - centre));
            jump[i] = jump_J[reach + distance];
            reversed[i] = jump_J[reach - distance];
            before[i + 1] = before[i] + jump[i];
        }
        for (size_t i = 0; i < first.size(); ++i) {
            first[i] = first_W1[std::min<int64_t>(i, reach)];
            first_before[i + 1] = first_before[i] + first[i];
        }
    }
};

constexpr float LEAST_SCALE = 1e-30f;

struct Posterior {
    std::vector<float> emission, before, share, weight, jumped, landed, rest, moved, start, empty;

    // The emission has been written, times x padded; what comes out: `jumped` has the posterior of links, `empties` that
    // of the empty word.
    void compute(JumpTables& tables, int64_t states, int64_t padded, int64_t times, float* empties, bool count) {
        before.assign((times + 1) * padded, 0.0f), share.assign(padded, 0.0f), rest.assign(padded, 0.0f);
        weight.resize(times * padded), jumped.resize(times * padded), landed.resize(times * padded);
        moved.resize(padded), start.resize(times + 1);
        const float* const jump = tables.jump.data() + tables.centre;
        const float* const reversed = tables.reversed.data() + tables.centre;
        const float* const first = tables.first.data();
        for (int64_t x = 0; x < states; ++x) {
            const float* const running = tables.before.data() + tables.centre - x;
            share[x] = 1.0f / (running[states] - running[0]);
            rest[x] = 1.0f;
        }
        const float first_share = 1.0f / tables.first_before[states];
        start[0] = 1.0f;
        for (int64_t t = 0; t < times; ++t) {
            float* const now = before.data() + t * padded;
            float *const next = now + padded, *const e = emission.data() + t * padded;
            float *const w = weight.data() + t * padded, *const to = jumped.data() + t * padded;
            for (int64_t s = 0; s < padded; s += LANES)
                vector_at(w + s) = vector_at(now + s) * vector_at(share.data() + s);
            convolve(w, states, jump, to, padded);
            Vector sums = {};
            for (int64_t s = 0; s < padded; s += LANES) {
                vector_at(to + s) += start[t] * first_share * vector_at(first + s);
                const Vector here = vector_at(now + s) * empty[t] + vector_at(to + s) * vector_at(e + s);
                vector_at(next + s) = here;
                sums += here;
            }
            start[t + 1] = start[t] * empty[t];
            const float scale = 1.0f / std::max(LEAST_SCALE, sum_of(sums) + start[t + 1]);
            for (int64_t s = 0; s < padded; s += LANES) vector_at(next + s) *= scale, vector_at(e + s) *= scale;
            start[t + 1] *= scale;
            empty[t] *= scale;
        }
        float start_rest = 1.0f;
        for (int64_t t = times - 1; t >= 0; --t) {
            float *const land = landed.data() + t * padded, *const to = jumped.data() + t * padded;
            const float *const now = before.data() + t * padded, *const e = emission.data() + t * padded;
            Vector stayed = {}, begun = {};
            for (int64_t s = 0; s < padded; s += LANES) {
                const Vector r = vector_at(rest.data() + s), l = vector_at(e + s) * r;
                vector_at(land + s) = l;
                vector_at(to + s) *= l;
                stayed += vector_at(now + s) * r;
                begun += l * vector_at(first + s);
            }
            empties[t] = (sum_of(stayed) + start[t] * start_rest) * empty[t];
            convolve(land, states, reversed, moved.data(), padded);
            for (int64_t s = 0; s < padded; s += LANES)
                vector_at(rest.data() + s) = vector_at(rest.data() + s) * empty[t] +
                                             vector_at(share.data() + s) * vector_at(moved.data() + s);
            if (count)
                for (int64_t s = 0; s < states; ++s) tables.firsts[s] += start[t] * first_share * land[s] * first[s];
            start_rest = start_rest * empty[t] + first_share * sum_of(begun);
        }
        for (int64_t x = 0; count && x < states; ++x)
            for (int64_t s = 0; s < padded; s += LANES) {
                Vector sums = {};
                for (int64_t t = 0; t < times; ++t)
                    sums += weight[t * padded + x] * vector_at(landed.data() + t * padded + s);
                vector_at(tables.jumps.data() + tables.centre - x + s) += sums;
            }
    }
};

}  // namespace

// Pointers to each function for both types of numbers, as Python finds them: `attend_float32`, `attend_bfloat16`, ...
#define FOR_BOTH(NAME)                                 \
    extern "C" {                                       \
    decltype(&NAME<float>) NAME##_float32 = NAME;      \
    decltype(&NAME<bfloat16>) NAME##_bfloat16 = NAME;  \
    }
FOR_BOTH(attend)
FOR_BOTH(attend_to_steps)
FOR_BOTH(quantize)
FOR_BOTH(product)
FOR_BOTH(dequantize)
FOR_BOTH(additive)
FOR_BOTH(log_normalizer)
FOR_BOTH(largest)

#ifdef __AVX2__
extern "C" int has_product() { return 1; }
#else
extern "C" int has_product() { return 0; }
#endif

// Links are at link[row * row_step + state * state_step + time * time_step], and the posterior likewise; what is padding
// there is left alone. `jump_counts` may be null: then nothing is counted.
extern "C" void hmm_posterior(const float* link, const float* empty_BT, const int64_t* states_B, const int64_t* times_B,
                              int64_t rows, int64_t row_step, int64_t state_step, int64_t time_step,
                              int64_t most_times, const float* jump_J, const float* first_W1, int64_t reach,
                              float empty_probability, float* posterior, float* emptied_BT, double* jump_counts,
                              double* first_counts) {
    int64_t longest = 1;
    for (int64_t row = 0; row < rows; ++row) longest = std::max(longest, states_B[row]);
    JumpTables tables(jump_J, first_W1, reach, longest);
    Posterior work;
    for (int64_t row = 0; row < rows; ++row) {
        const int64_t states = states_B[row], times = times_B[row], padded = (states + LANES - 1) / LANES * LANES;
        const float* const from = link + row * row_step;
        float* const to = posterior + row * row_step;
        work.emission.assign(times * padded, 0.0f);
        work.empty.resize(times);
        for (int64_t t = 0; t < times; ++t) {
            work.empty[t] = empty_probability * empty_BT[row * most_times + t];
            for (int64_t s = 0; s < states; ++s)
                work.emission[t * padded + s] = (1.0f - empty_probability) * from[s * state_step + t * time_step];
        }
        work.compute(tables, states, padded, times, emptied_BT + row * most_times, jump_counts != nullptr);
        for (int64_t t = 0; t < times; ++t)
            for (int64_t s = 0; s < states; ++s)
                to[s * state_step + t * time_step] = work.jumped[t * padded + s];
    }
    if (jump_counts == nullptr) return;
    for (int64_t i = 0; i < static_cast<int64_t>(tables.jumps.size()); ++i) {
        const int64_t distance = std::max(-reach, std::min(reach, i - tables.centre));
        jump_counts[reach + distance] += static_cast<double>(tables.jumps[i]) * tables.jump[i];
    }
    for (int64_t i = 0; i < static_cast<int64_t>(tables.firsts.size()); ++i)
        first_counts[std::min(i, reach)] += tables.firsts[i];
}

// The distinct numbers in the order in which they come first, and the place of each number among them; returns how many.
// All entries of `table` are -1; its size is a power of two, at least twice the count.
extern "C" int64_t distinct(const int64_t* numbers, int64_t count, int32_t* table, int64_t size, int64_t* found,
                            int32_t* places) {
    int64_t distinct = 0;
    for (int64_t i = 0; i < count; ++i) {
        // Fibonacci hashing (Knuth, The Art of Computer Programming, volume 3, section 6.4)
        uint64_t slot = (static_cast<uint64_t>(numbers[i]) * 0x9e3779b97f4a7c15u >> 24) & (size - 1);
        while (table[slot] >= 0 && found[table[slot]] != numbers[i]) slot = (slot + 1) & (size - 1);
        if (table[slot] < 0) {
            found[distinct] = numbers[i];
            table[slot] = static_cast<int32_t>(distinct++);
        }
        places[i] = table[slot];
    }
    return distinct;
}
