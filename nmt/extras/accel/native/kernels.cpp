// Operations of a search between its matrix products, each in one pass over memory.
//
// A row of a result is computed only from its own row of the input, and in an order that does not depend on other rows:
// a sentence depends neither on its batch nor on the number of threads. Shapes are as in Python: N rows, H heads,
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
#define HAS_PRODUCT 1
#else
#define HAS_PRODUCT 0
#endif

// PyTorch's threads, which are OpenMP's. The functions are weak symbols: they exist if PyTorch uses them, while linking
// OpenMP might start a second set of threads that competes with the first.
#if defined(__linux__)
extern "C" {
void GOMP_parallel(void (*)(void*), void*, unsigned, unsigned) __attribute__((weak));
int omp_get_max_threads() __attribute__((weak));
int omp_get_num_threads() __attribute__((weak));
int omp_get_thread_num() __attribute__((weak));
}
#define HAS_THREADS \
    (GOMP_parallel && omp_get_max_threads && omp_get_num_threads && omp_get_thread_num && omp_get_max_threads() > 1)
#else
#define HAS_THREADS false
#endif

namespace {

// Least number of evaluations of tanh or exp, or as much work, that takes longer than waking other threads.
constexpr int64_t WORTH_SHARING = 1 << 14;

struct Rows {
    int64_t start, end;
};

// f(rows) for each thread's share of `count` rows with `numbers` entries each.
template <typename F>
void shared_out(int64_t count, int64_t numbers, const F& f) {
#if defined(__linux__)
    if (count > 1 && count * numbers >= WORTH_SHARING && HAS_THREADS) {
        struct Work {
            const F& f;
            int64_t count;
        } work = {f, count};
        const auto share = [](void* argument) {
            const Work& all = *static_cast<const Work*>(argument);
            const int64_t threads = omp_get_num_threads(), own = omp_get_thread_num();
            all.f({all.count * own / threads, all.count * (own + 1) / threads});
        };
        GOMP_parallel(share, &work, 0, 0);
        return;
    }
#endif
    f(Rows{0, count});
}

struct bfloat16 {
    uint16_t bits;
};

inline float wide(float x) { return x; }

inline float wide(bfloat16 x) {
    const uint32_t bits = static_cast<uint32_t>(x.bits) << 16;
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

inline void narrow(float value, float& to) { to = value; }

inline void narrow(float value, bfloat16& to) {  // to the nearest, ties to even
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    to.bits = static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

// exp(x) = 2^n (1 + p), p = exp(r) - 1 with |r| <= log(2) / 2 as a Taylor polynomial, whose rest is below 2e-9.
struct Exponential {
    float power, p;
};

inline Exponential exponential(float x) {
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
    float power;
    std::memcpy(&power, &bits, sizeof power);
    return {power, p};
}

inline float exp_of(float x) {
    const Exponential e = exponential(x);
    return e.power + e.power * e.p;
}

inline float sigmoid(float x) { return 1.0f / (1.0f + exp_of(-x)); }

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
#define INLINED __attribute__((always_inline))
#define ALWAYS_INLINE INLINED inline

// Loops over positions run to a multiple of it: the rest of a vector takes longer than a vector.
constexpr int64_t LANES = 16;

// As many numbers as a register holds, or a few of them.
typedef float Lanes __attribute__((vector_size(LANES * sizeof(float))));

inline Lanes lanes(const float* from) {
    Lanes value;
    std::memcpy(&value, from, sizeof value);
    return value;
}

inline Lanes lanes(const bfloat16* from) {
#if defined(__AVX512F__)
    const __m256i half_bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
    const __m512i whole_bits = _mm512_slli_epi32(_mm512_cvtepu16_epi32(half_bits), 16);  // compilers take it apart
    Lanes value;
    std::memcpy(&value, &whole_bits, sizeof value);
    return value;
#else
    typedef uint16_t Halves __attribute__((vector_size(LANES * sizeof(uint16_t))));
    typedef uint32_t Wholes __attribute__((vector_size(LANES * sizeof(uint32_t))));
    Halves bits;
    std::memcpy(&bits, from, sizeof bits);
    const Wholes wide_bits = __builtin_convertvector(bits, Wholes) << 16;
    Lanes value;
    std::memcpy(&value, &wide_bits, sizeof value);
    return value;
#endif
}

// The first `count` of a register, and zeros.
template <typename T>
inline Lanes some_lanes(const T* from, int64_t count) {
    T some[LANES] = {};
    std::memcpy(some, from, count * sizeof(T));
    return lanes(some);
}

// min(x, 1e15), NaN for NaN: the product of two results, and its inverse, are normal numbers.
ALWAYS_INLINE Lanes bounded(Lanes x) {
#if defined(__AVX512F__)
    __m512 wide;
    std::memcpy(&wide, &x, sizeof wide);
    wide = _mm512_min_ps(_mm512_set1_ps(1e15f), wide);
    std::memcpy(&x, &wide, sizeof x);
    return x;
#elif defined(__AVX__)
    __m256 halves[2];
    std::memcpy(halves, &x, sizeof x);
    halves[0] = _mm256_min_ps(_mm256_set1_ps(1e15f), halves[0]);
    halves[1] = _mm256_min_ps(_mm256_set1_ps(1e15f), halves[1]);
    std::memcpy(&x, halves, sizeof x);
    return x;
#else
    for (int64_t i = 0; i < LANES; ++i) x[i] = x[i] > 1e15f ? 1e15f : x[i];
    return x;
#endif
}

// 1 / x up to rounding, for x that is not too large: a division takes five times as long.
ALWAYS_INLINE Lanes reciprocal(Lanes x) {
#if defined(__AVX512F__)
    __m512 wide;
    std::memcpy(&wide, &x, sizeof wide);
    const __m512 first = _mm512_rcp14_ps(wide);
    const __m512 refined = _mm512_mul_ps(first, _mm512_fnmadd_ps(wide, first, _mm512_set1_ps(2.0f)));
    std::memcpy(&x, &refined, sizeof x);
    return x;
#else
    return 1.0f / x;
#endif
}

inline float sum_of(Lanes x) {  // by halves: in sequence each sum would wait for the one before
    typedef float Half __attribute__((vector_size(LANES * sizeof(float) / 2)));
    typedef float Quarter __attribute__((vector_size(LANES * sizeof(float) / 4)));
    Half halves[2];
    std::memcpy(halves, &x, sizeof x);
    const Half half = halves[0] + halves[1];
    Quarter quarters[2];
    std::memcpy(quarters, &half, sizeof half);
    const Quarter quarter = quarters[0] + quarters[1];
    return (quarter[0] + quarter[2]) + (quarter[1] + quarter[3]);
}

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

// Context of one head of one query; key(s) and value(s) point to those of a position. WIDTH is the width as a constant
// for the compiler, or 0.
template <int64_t WIDTH, typename T, typename Key, typename Value>
inline void attend_head(const T* q, const Key& key, const Value& value, const float* seen, float* scores, float* sums,
                 T* context, int64_t positions, int64_t any_width, float scale) {
    const int64_t width = WIDTH ? WIDTH : any_width;
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

template <int64_t WIDTH, typename T>
void attend_with(const T* query, int64_t query_row, int64_t query_head, const T* keys, const T* values,
                 int64_t memory_row, int64_t memory_head, int64_t memory_position, const uint8_t* hidden, T* context,
                 int64_t rows, int64_t beams, int64_t heads, int64_t positions, int64_t any_width, float scale) {
    const int64_t width = WIDTH ? WIDTH : any_width;
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
            attend_head<WIDTH>(
                query + n * query_row + h * query_head, [=](int64_t s) { return keys + start + s * memory_position; },
                [=](int64_t s) { return values + start + s * memory_position; }, seen, scores, sums,
                context + (n * heads + h) * width, positions, width, scale);
        }
    }
}

// The positions are earlier steps; a row comes from row `backpointers` of each. A row of a step has keys and then
// values at its end, those of each head side by side.
template <int64_t WIDTH, typename T>
void attend_to_steps_with(const T* query, int64_t query_row, const T* const* steps, int64_t step_row,
                        const int64_t* backpointers, T* context, int64_t rows, int64_t heads, int64_t positions,
                        int64_t any_width, float scale) {
    const int64_t width = WIDTH ? WIDTH : any_width;
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
            attend_head<WIDTH>(
                query + n * query_row + h * width, [=](int64_t s) { return row_of[s] + of_keys + h * width; },
                [=](int64_t s) { return row_of[s] + of_values + h * width; }, seen, scores, sums,
                context + (n * heads + h) * width, positions, width, scale);
        }
    }
}

template <typename T, typename... Others>
void attend(int64_t width, const T* query, Others... others) {
    switch (width) {
        case 32: return attend_with<32>(query, others...);
        case 64: return attend_with<64>(query, others...);
        default: return attend_with<0>(query, others...);
    }
}

template <typename T, typename... Others>
void attend_to_steps(int64_t width, const T* query, Others... others) {
    switch (width) {
        case 32: return attend_to_steps_with<32>(query, others...);
        case 64: return attend_to_steps_with<64>(query, others...);
        default: return attend_to_steps_with<0>(query, others...);
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

template <typename T>
void quantize(const T* x, int8_t* values, float* scale, int64_t rows, int64_t inputs) {
    for (int64_t n = 0; n < rows; ++n) {
        const T* const row = x + n * inputs;
        const float inverse = 1.0f / (scale[n] = step(row, inputs));
        int8_t* const out = values + n * inputs;
#pragma omp simd
        for (int64_t i = 0; i < inputs; ++i) {
            out[i] = static_cast<int8_t>(static_cast<int32_t>(std::nearbyint(wide(row[i]) * inverse)));
        }
    }
}

// CPUs multiply unsigned by signed bytes and add four products at once: rows are raised by 128, and sums start at
// `shift`, which takes that off again.
struct UnsignedRows {
    int64_t stride;
    std::vector<uint8_t> values;
    std::vector<float> scale;

    // The same as quantize, and zeros up to the stride.
    template <typename T>
    void read(const T* x, int64_t rows, int64_t inputs, int64_t new_stride) {
        stride = new_stride;
        values.resize(rows * stride);
        scale.resize(rows);
        for (int64_t n = 0; n < rows; ++n) {
            uint8_t* const to = values.data() + n * stride;
            const T* const from = x + n * inputs;
            const float inverse = 1.0f / (scale[n] = step(from, inputs));
#pragma omp simd
            for (int64_t i = 0; i < inputs; ++i) {
                to[i] = static_cast<uint8_t>(static_cast<int32_t>(std::nearbyint(wide(from[i]) * inverse)) + 128);
            }
            for (int64_t i = inputs; i < new_stride; ++i) to[i] = 0;
        }
    }
};

// The product of integers, scaled.
//
// A weight is packed for it in Python: blocks of BLOCK outputs, in each of them quads of inputs, in each of them the
// quad of every output; missing inputs and outputs are 0, in shift too.
constexpr int64_t BLOCK = 64, QUAD = 4;

#if HAS_PRODUCT
constexpr int64_t VECTORS = BLOCK / LANES;

// Scales and bias of outputs.
template <typename T>
struct Outputs {
    const float* scale;
    const T* bias;
    int64_t count;
};

ALWAYS_INLINE __m512 load(__mmask16 there, const float* from) { return _mm512_maskz_loadu_ps(there, from); }

ALWAYS_INLINE __m512 load(__mmask16 there, const bfloat16* from) {
    const __m256i bits = _mm256_maskz_loadu_epi16(there, from);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
}

ALWAYS_INLINE void store(__mmask16 there, float* to, __m512 value) { _mm512_mask_storeu_ps(to, there, value); }

ALWAYS_INLINE __m512i upper_bits(__m512 value) {  // as narrow()
    const __m512i bits = _mm512_castps_si512(value);
    const __m512i is_odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    const __m512i rounded = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), is_odd);
    return _mm512_srli_epi32(rounded, 16);
}

ALWAYS_INLINE void store(__mmask16 there, bfloat16* to, __m512 value) {
    _mm256_mask_storeu_epi16(to, there, _mm512_cvtepi32_epi16(upper_bits(value)));
}

// The value after rounding to the type of storage.
ALWAYS_INLINE __m512 stored(const float*, __m512 value) { return value; }

ALWAYS_INLINE __m512 stored(const bfloat16*, __m512 value) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(upper_bits(value), 16));
}

// Mask of the outputs that exist among LANES from number o on.
ALWAYS_INLINE __mmask16 there_are(int64_t o, int64_t count) {
    return count - o >= LANES ? 0xffff : count <= o ? 0 : static_cast<__mmask16>((1u << (count - o)) - 1);
}

// LANES outputs, from number o on, from their sums.
template <typename T>
ALWAYS_INLINE __m512 outputs_of(__m512i sums, __mmask16 there, __m512 row_scale, const Outputs<T>& of, int64_t o) {
    const __m512 scale = _mm512_mul_ps(row_scale, load(there, of.scale + o));
    const __m512 value = _mm512_cvtepi32_ps(sums);
    return of.bias ? _mm512_fmadd_ps(value, scale, load(there, of.bias + o)) : _mm512_mul_ps(value, scale);
}

// The sums of ROWS rows and one block of outputs. Not inlined, and with nothing but the product: next to anything else
// compilers run out of registers, keep sums in memory, and take twice as long.
template <int ROWS>
__attribute__((noinline)) void tile(const uint8_t* x, int64_t stride, const int8_t* weight, const int32_t* shift,
                                    int64_t quads, int32_t (*to)[BLOCK]) {
    __m512i sums[ROWS][VECTORS];
    UNROLLED for (int v = 0; v < VECTORS; ++v) {
        const __m512i start = _mm512_loadu_si512(shift + v * LANES);
        UNROLLED for (int r = 0; r < ROWS; ++r) sums[r][v] = start;
    }
    for (int64_t q = 0; q < quads; ++q) {
        __m512i of_quad[VECTORS];
        UNROLLED for (int v = 0; v < VECTORS; ++v) of_quad[v] = _mm512_loadu_si512(weight + (q * VECTORS + v) * 64);
        UNROLLED for (int r = 0; r < ROWS; ++r) {
            int32_t four;
            std::memcpy(&four, x + r * stride + q * QUAD, sizeof four);
            const __m512i everywhere = _mm512_set1_epi32(four);
            UNROLLED for (int v = 0; v < VECTORS; ++v) {
                sums[r][v] = _mm512_dpbusd_epi32(sums[r][v], everywhere, of_quad[v]);
            }
        }
    }
    UNROLLED for (int r = 0; r < ROWS; ++r) {
        UNROLLED for (int v = 0; v < VECTORS; ++v) _mm512_storeu_si512(to[r] + v * LANES, sums[r][v]);
    }
}

constexpr int64_t TILE = 6;  // rows; with four vectors of sums for each: 24 of the 32 registers
constexpr int64_t TOGETHER = 16 * TILE;  // rows whose results stay in the cache until all their blocks are done

// done(sums, n, first) for each row n and each block of outputs from number `first` on; `together` rows go through all
// blocks before the next ones do.
template <typename Done>
ALWAYS_INLINE void multiplied(const UnsignedRows& integers, const int8_t* weight, const int32_t* shift, int64_t rows,
                              int64_t outputs, int64_t together, const Done& done) {
    constexpr decltype(&tile<1>) TILES[TILE] = {tile<1>, tile<2>, tile<3>, tile<4>, tile<5>, tile<TILE>};
    const int64_t stride = integers.stride, quads = stride / QUAD;
    const uint8_t* const values = integers.values.data();
    int32_t sums[TILE][BLOCK];
    for (int64_t start = 0; start < rows; start += together) {
        const int64_t end = rows < start + together ? rows : start + together;
        for (int64_t first = 0; first < outputs; first += BLOCK) {
            for (int64_t n = start; n < end; n += TILE) {
                const int64_t count = end - n < TILE ? end - n : TILE;
                TILES[count - 1](values + n * stride, stride, weight + first * stride, shift + first, quads, sums);
                for (int64_t r = 0; r < count; ++r) done(sums[r], n + r, first);
            }
        }
    }
}

ALWAYS_INLINE __m512i sums_of(const int32_t* block, int64_t v) { return _mm512_loadu_si512(block + v * LANES); }

template <typename T>
void product(const T* x, const int8_t* weight, const int32_t* shift, const float* output_scale, const T* bias, T* out,
             bool onto, int64_t rows, int64_t inputs, int64_t outputs) {
    static thread_local UnsignedRows integers;
    integers.read(x, rows, inputs, (inputs + QUAD - 1) / QUAD * QUAD);
    const float* const scale = integers.scale.data();
    const Outputs<T> of = {output_scale, bias, outputs};
    multiplied(integers, weight, shift, rows, outputs, TOGETHER,
               [=](const int32_t* sums, int64_t n, int64_t first) INLINED {
        const __m512 row_scale = _mm512_set1_ps(scale[n]);
        UNROLLED for (int64_t v = 0; v < VECTORS; ++v) {
            const int64_t o = first + v * LANES;
            const __mmask16 there = there_are(o, of.count);
            T* const to = out + n * of.count + o;
            __m512 value = outputs_of(sums_of(sums, v), there, row_scale, of, o);
            if (onto) value = _mm512_add_ps(value, load(there, to));
            store(there, to, value);
        }
    });
}

// exp(x) of LANES numbers that are not positive, at least 2e-38.
ALWAYS_INLINE __m512 falling_exp(__m512 x) {
    x = _mm512_max_ps(_mm512_set1_ps(-87.0f), x);  // NaN stays NaN
    const __m512 n = _mm512_roundscale_ps(_mm512_mul_ps(x, _mm512_set1_ps(1.44269504f)), 0);
    __m512 r = _mm512_fnmadd_ps(n, _mm512_set1_ps(0.693359375f), x);  // log 2 in two parts
    r = _mm512_fmadd_ps(n, _mm512_set1_ps(2.12194440e-4f), r);
    __m512 p = _mm512_set1_ps(1.0f / 720.0f);
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0f / 120.0f));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0f / 24.0f));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0f / 6.0f));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0.5f));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0f));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0f));
    return _mm512_scalef_ps(p, n);
}

// log sum exp of a row, block by block; the result does not depend on the kernel that feeds it.
struct Normalizer {
    float most = -std::numeric_limits<float>::max();
    float sums[LANES] = {};  // of exp(number - most)

    // Without `may_rise` no number is above `most`.
    ALWAYS_INLINE void add(const __m512 (&values)[VECTORS], const __mmask16 (&there)[VECTORS], bool may_rise) {
        __m512 sum = _mm512_loadu_ps(sums);
        if (may_rise) {
            __m512 largest = _mm512_set1_ps(most);
            UNROLLED for (int v = 0; v < VECTORS; ++v) {
                const __mmask16 is_above = _mm512_mask_cmp_ps_mask(there[v], values[v], largest, _CMP_GT_OQ);
                largest = _mm512_mask_mov_ps(largest, is_above, values[v]);
            }
            const float risen = _mm512_reduce_max_ps(largest);
            if (risen > most) {
                sum = _mm512_mul_ps(sum, falling_exp(_mm512_set1_ps(most - risen)));
                most = risen;
            }
        }
        const __m512 from = _mm512_set1_ps(most);
        UNROLLED for (int v = 0; v < VECTORS; ++v) {
            sum = _mm512_mask_add_ps(sum, there[v], sum, falling_exp(_mm512_sub_ps(values[v], from)));
        }
        _mm512_storeu_ps(sums, sum);
    }

    float result() const {
        const float sum = _mm512_reduce_add_ps(_mm512_loadu_ps(sums));
        if (sum < 0.5f) return -INFINITY;  // the largest number has 1 in it, unless all are -inf
        return std::isinf(most) ? most : most + std::log(sum);
    }
};

// As in PyTorch, NaN is larger than any number.
inline bool stands_before(float one, float other) { return one > other || (one != one && other == other); }

// Inserts a number that stands before entry `at` of a falling list, behind its equals.
inline void put(float entry, int64_t where, float* value, int64_t* index_of, int64_t at) {
    for (; at > 0 && stands_before(entry, value[at - 1]); --at) {
        value[at] = value[at - 1];
        index_of[at] = index_of[at - 1];
    }
    value[at] = entry;
    index_of[at] = where;
}

// The `count` largest outputs of each row, largest first, and their indices; with `normalizers`, log sum exp of all.
// Missing entries are -inf at 0. Equal to the results of log_normalizer and argmax for the output of product.
template <bool NORMALIZED, typename T>
void top_outputs_with(const T* x, const int8_t* weight, const int32_t* shift, const float* output_scale, const T* bias,
                       float* values, int64_t* indices, float* normalizers, int64_t rows, int64_t inputs,
                       int64_t outputs, int64_t count) {
    static thread_local UnsignedRows integers;
    static thread_local std::vector<Normalizer> normalizing;
    integers.read(x, rows, inputs, (inputs + QUAD - 1) / QUAD * QUAD);
    normalizing.assign(NORMALIZED ? rows : 0, Normalizer());
    std::fill(values, values + rows * count, -INFINITY);
    std::fill(indices, indices + rows * count, 0);
    Normalizer* const normalizer = normalizing.data();
    const float* const scale = integers.scale.data();
    const Outputs<T> of = {output_scale, bias, outputs};
    // all rows together: the results are few and stay in the cache
    multiplied(integers, weight, shift, rows, outputs, rows, [=](const int32_t* sums, int64_t n, int64_t first) INLINED {
        const __m512 row_scale = _mm512_set1_ps(scale[n]);
        float* const value = values + n * count;
        const __m512 least = _mm512_set1_ps(value[count - 1]);
        __m512 results[VECTORS];
        __mmask16 there[VECTORS];
        uint64_t is_above = 0;  // a bit for each output; NaN counts as above
        UNROLLED for (int64_t v = 0; v < VECTORS; ++v) {
            const int64_t o = first + v * LANES;
            there[v] = there_are(o, of.count);
            results[v] = stored(x, outputs_of(sums_of(sums, v), there[v], row_scale, of, o));
            const uint64_t is_there_above = _mm512_mask_cmp_ps_mask(there[v], results[v], least, _CMP_NLE_UQ);
            is_above |= is_there_above << (v * LANES);
        }
        if (NORMALIZED) normalizer[n].add(results, there, is_above != 0);
        if (!is_above) return;
        float entry[BLOCK];
        UNROLLED for (int64_t v = 0; v < VECTORS; ++v) _mm512_storeu_ps(entry + v * LANES, results[v]);
        for (; is_above; is_above &= is_above - 1) {
            const int64_t o = __builtin_ctzll(is_above);
            if (stands_before(entry[o], value[count - 1])) put(entry[o], first + o, value, indices + n * count, count - 1);
        }
    });
    for (int64_t n = 0; NORMALIZED && n < rows; ++n) normalizers[n] = normalizer[n].result();
}

template <typename T, typename... Others>
void top_outputs(const T* x, const int8_t* weight, const int32_t* shift, const float* output_scale, const T* bias,
                  float* values, int64_t* indices, float* normalizers, Others... others) {
    const auto run = normalizers ? top_outputs_with<true, T> : top_outputs_with<false, T>;
    run(x, weight, shift, output_scale, bias, values, indices, normalizers, others...);
}
#else
template <typename T>
void product(const T*, const int8_t*, const int32_t*, const float*, const T*, T*, bool, int64_t, int64_t, int64_t) {}

template <typename T>
void top_outputs(const T*, const int8_t*, const int32_t*, const float*, const T*, float*, int64_t*, float*, int64_t,
                  int64_t, int64_t, int64_t) {}
#endif

// Products with the rows of a weight that are on the list of a sentence, -inf behind its end. The first row is the
// `first` of a batch with `beams` rows of each sentence. dots(rows, tokens, results) computes several rows and TOKENS
// tokens at a time: a single sum would wait for each of its terms.
constexpr int TOKENS = 4, MOST_ROWS = 5;

struct Lists {
    const int64_t *tokens, *lengths;
    int64_t first, rows, beams, columns;
};

template <typename T, typename F>
void of_lists(Rows own, const Lists of, T* out, const F& dots) {
    for (int64_t start = own.start, end; start < own.end; start = end) {
        const int64_t sentence = (of.first + start) / of.beams, next = (sentence + 1) * of.beams - of.first;
        end = next < own.end ? next : own.end;
        const int64_t* const list = of.tokens + sentence * of.columns;
        const int64_t length = of.lengths[sentence];
        for (int64_t l = 0; l < length; l += TOKENS) {
            const int64_t tokens_left = length - l < TOKENS ? length - l : TOKENS;
            int64_t tokens[TOKENS];
            for (int64_t t = 0; t < TOKENS; ++t) tokens[t] = list[t < tokens_left ? l + t : l];
            const auto run = [&](auto together, int64_t n, int64_t rows_left) {
                constexpr int ROWS = decltype(together)::value;
                int64_t rows[ROWS];
                float results[ROWS][TOKENS];
                for (int64_t r = 0; r < ROWS; ++r) rows[r] = r < rows_left ? n + r : n;
                dots(rows, tokens, results);
                for (int64_t r = 0; r < rows_left && r < ROWS; ++r) {
                    for (int64_t t = 0; t < tokens_left; ++t) narrow(results[r][t], out[rows[r] * of.columns + l + t]);
                }
            };
            int64_t n = start;
            for (; end - n > 2; n += MOST_ROWS) run(std::integral_constant<int, MOST_ROWS>(), n, end - n);
            for (; n < end; ++n) run(std::integral_constant<int, 1>(), n, 1);
        }
        for (int64_t n = start; n < end; ++n) {
            for (int64_t l = length; l < of.columns; ++l) narrow(-INFINITY, out[n * of.columns + l]);
        }
    }
}

template <typename T>
void shortlist(const Lists of, const T* x, const T* weight, const T* bias, T* out, int64_t inputs) {
    const int64_t whole = inputs / LANES * LANES;
    const auto dots = [=](const auto& rows, const int64_t* tokens, float(*results)[TOKENS]) {
        constexpr int ROWS = sizeof(rows) / sizeof(rows[0]);
        Lanes sums[ROWS][TOKENS] = {};
        for (int64_t i = 0; i < whole; i += LANES) {
            Lanes weights[TOKENS];
            UNROLLED for (int t = 0; t < TOKENS; ++t) weights[t] = lanes(weight + tokens[t] * inputs + i);
            UNROLLED for (int r = 0; r < ROWS; ++r) {
                const Lanes row = lanes(x + rows[r] * inputs + i);
                UNROLLED for (int t = 0; t < TOKENS; ++t) sums[r][t] += row * weights[t];
            }
        }
        UNROLLED for (int r = 0; r < ROWS; ++r) {
            UNROLLED for (int t = 0; t < TOKENS; ++t) {
                float sum = sum_of(sums[r][t]);
                for (int64_t i = whole; i < inputs; ++i) {
                    sum += wide(x[rows[r] * inputs + i]) * wide(weight[tokens[t] * inputs + i]);
                }
                results[r][t] = sum + wide(bias[tokens[t]]);
            }
        }
    };
    shared_out(of.rows, of.columns * inputs / LANES, [=](Rows own) { of_lists(own, of, out, dots); });
}

#if HAS_PRODUCT
template <typename T>
void shortlist_int8(const Lists of, const T* x, const int8_t* weight, const int32_t* shift, const float* output_scale,
                  const T* bias, T* out, int64_t inputs) {
    static thread_local UnsignedRows integers;
    integers.read(x, of.rows, inputs, inputs);
    const uint8_t* const values = integers.values.data();
    const float* const scale = integers.scale.data();
    const auto dots = [=](const auto& rows, const int64_t* tokens, float(*results)[TOKENS]) {
        constexpr int ROWS = sizeof(rows) / sizeof(rows[0]);
        __m512i sums[ROWS][TOKENS] = {};
        for (int64_t i = 0; i < inputs; i += 64) {
            const __mmask64 there = inputs - i < 64 ? (1ull << (inputs - i)) - 1 : ~0ull;
            __m512i weights[TOKENS];
            UNROLLED for (int t = 0; t < TOKENS; ++t) {
                weights[t] = _mm512_maskz_loadu_epi8(there, weight + tokens[t] * inputs + i);
            }
            UNROLLED for (int r = 0; r < ROWS; ++r) {
                const __m512i row = _mm512_maskz_loadu_epi8(there, values + rows[r] * inputs + i);
                UNROLLED for (int t = 0; t < TOKENS; ++t) {
                    sums[r][t] = _mm512_dpbusd_epi32(sums[r][t], row, weights[t]);
                }
            }
        }
        UNROLLED for (int r = 0; r < ROWS; ++r) {
            UNROLLED for (int t = 0; t < TOKENS; ++t) {
                const int32_t sum = _mm512_reduce_add_epi32(sums[r][t]) + shift[tokens[t]];
                const float by = scale[rows[r]] * output_scale[tokens[t]];
                results[r][t] = static_cast<float>(sum) * by + wide(bias[tokens[t]]);
            }
        }
    };
    shared_out(of.rows, of.columns * inputs / (4 * LANES), [=](Rows own) { of_lists(own, of, out, dots); });
}
#else
template <typename T>
void shortlist_int8(const Lists, const T*, const int8_t*, const int32_t*, const float*, const T*, T*, int64_t) {}
#endif

template <typename T>
void dequantize(const int32_t* product, const float* row_scale, const float* output_scale, const T* bias, T* out,
                bool onto, int64_t rows, int64_t outputs) {
    for (int64_t n = 0; n < rows; ++n) {
        const int32_t* const p = product + n * outputs;
        T* const to = out + n * outputs;
        const float scale = row_scale[n];
#pragma omp simd
        for (int64_t o = 0; o < outputs; ++o) {
            float value = static_cast<float>(p[o]) * (scale * output_scale[o]);
            if (bias) value += wide(bias[o]);
            if (onto) value += wide(to[o]);
            narrow(value, to[o]);
        }
    }
}

// The next state of some units from their gates.
template <typename T, typename G>
ALWAYS_INLINE void lstm_units(const G* i, const G* f, const G* g, const G* o, const T* cell, T* hidden, T* new_cell,
                              int64_t units) {
#pragma omp simd
    for (int64_t d = 0; d < units; ++d) {
        const float value = sigmoid(wide(f[d])) * wide(cell[d]) + sigmoid(wide(i[d])) * tanh_of(wide(g[d]));
        narrow(value, new_cell[d]);
        narrow(sigmoid(wide(o[d])) * tanh_of(value), hidden[d]);
    }
}

#if HAS_PRODUCT
constexpr int64_t GATES = 4 * BLOCK;

// An LSTM step from the parts of its input and its state, each with a weight of bytes. BLOCK outputs of a gate stand
// beside BLOCK of the next: the gates of BLOCK units are computed and used before those of the next units, so they stay
// in the cache with the weights of those units, for up to MOST rows.
template <typename T>
void lstm_step(const T* const* x, const int64_t* inputs, const int8_t* const* weights, const int32_t* const* shifts,
               const float* const* scales, int64_t parts, const float* bias, const T* cell, T* hidden, T* new_cell,
               int64_t rows, int64_t width) {
    constexpr int64_t MOST = 64 * TILE;
    shared_out((rows + TILE - 1) / TILE, TILE * width, [=](Rows tiles) {
        static thread_local std::vector<UnsignedRows> integers;
        static thread_local std::vector<float> gates;
        integers.resize(integers.size() < static_cast<size_t>(parts) ? parts : integers.size());
        gates.resize(MOST * GATES);
        float* const results = gates.data();
        const int64_t last = tiles.end * TILE < rows ? tiles.end * TILE : rows;
        for (int64_t start = tiles.start * TILE; start < last; start += MOST) {
            const int64_t count = last - start < MOST ? last - start : MOST;
            for (int64_t p = 0; p < parts; ++p) {
                integers[p].read(x[p] + start * inputs[p], count, inputs[p], (inputs[p] + QUAD - 1) / QUAD * QUAD);
            }
            for (int64_t unit = 0; unit < width; unit += BLOCK) {
                const int64_t own = unit * 4;
                for (int64_t p = 0; p < parts; ++p) {
                    const int8_t* const weight = weights[p] + own * integers[p].stride;
                    const float* const of_bias = p ? nullptr : bias + own;
                    const float *const row_scale = integers[p].scale.data(), *const scale = scales[p] + own;
                    multiplied(integers[p], weight, shifts[p] + own, count, GATES, count,
                               [=](const int32_t* sums, int64_t n, int64_t first) INLINED {
                        const __m512 by_row = _mm512_set1_ps(row_scale[n]);
                        UNROLLED for (int64_t v = 0; v < VECTORS; ++v) {
                            const int64_t o = first + v * LANES;
                            float* const to = results + n * GATES + o;
                            const __m512 by = _mm512_mul_ps(by_row, _mm512_loadu_ps(scale + o));
                            const __m512 before = _mm512_loadu_ps(of_bias ? of_bias + o : to);
                            _mm512_storeu_ps(to, _mm512_fmadd_ps(_mm512_cvtepi32_ps(sums_of(sums, v)), by, before));
                        }
                    });
                }
                const int64_t units = width - unit < BLOCK ? width - unit : BLOCK;
                for (int64_t n = 0; n < count; ++n) {
                    const float *const i = results + n * GATES, *const f = i + BLOCK, *const g = f + BLOCK;
                    const int64_t at = (start + n) * width + unit;
                    lstm_units(i, f, g, g + BLOCK, cell + at, hidden + at, new_cell + at, units);
                }
            }
        }
    });
}
#else
template <typename T>
void lstm_step(const T* const*, const int64_t*, const int8_t* const*, const int32_t* const*, const float* const*,
               int64_t, const float*, const T*, T*, T*, int64_t, int64_t) {}
#endif

template <typename T>
void additive(Rows rows, const T* query, const T* keys, const T* v, T* scores, int64_t beams, int64_t positions,
              int64_t width) {
    for (int64_t n = rows.start; n < rows.end; ++n) {
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

// Attention by v . tanh(q + k), from keys e^2k: with e^2q, computed once for a query, tanh(q + k) is
// 1 - 2 / (1 + e^2q e^2k). Up to QUERIES rows of a sentence read its memory together.
constexpr int QUERIES = 5;

struct AdditiveSizes {
    int64_t beams, positions, width, value_width;
};

// Number of times that a sentence's memory is read.
inline int64_t parts_of(const AdditiveSizes of) { return (of.beams + QUERIES - 1) / QUERIES; }

// Adds v / (1 + e^2q e^2k) of LANES columns.
template <int ROWS>
ALWAYS_INLINE void add_columns(Lanes (&sums)[ROWS], Lanes key, Lanes v, const float* queries, int64_t row) {
    UNROLLED for (int r = 0; r < ROWS; ++r) sums[r] += v * reciprocal(bounded(1.0f + lanes(queries + r * row) * key));
}

// The same of twice as many columns, v / x + w / y being (v y + w x) / (x y).
template <int ROWS>
ALWAYS_INLINE void add_columns(Lanes (&sums)[ROWS], const Lanes (&keys)[2], const float* v, const float* queries,
                               int64_t row) {
    const Lanes first = lanes(v), second = lanes(v + LANES);
    UNROLLED for (int r = 0; r < ROWS; ++r) {
        const Lanes x = bounded(1.0f + lanes(queries + r * row) * keys[0]);
        const Lanes y = bounded(1.0f + lanes(queries + r * row + LANES) * keys[1]);
        sums[r] += (first * y + second * x) * reciprocal(x * y);
    }
}

// The scores of ROWS queries, rows of `padded` numbers; hidden positions are not written.
template <int ROWS, typename K>
__attribute__((noinline)) void score_exp_keys(const float* queries, const K* keys, const float* v, float sum_of_v,
                                            const float* seen, float* scores, int64_t padded, const AdditiveSizes of) {
    const int64_t whole = of.width / LANES * LANES, rest = of.width - whole, row = whole + (rest ? LANES : 0);
    for (int64_t s = 0; s < of.positions; ++s) {
        if (!(seen[s] > 0.0f)) continue;
        const K* const key = keys + s * of.width;
        Lanes sums[ROWS] = {};
        int64_t a = 0;
        for (; a + 2 * LANES <= whole; a += 2 * LANES) {
            add_columns(sums, {lanes(key + a), lanes(key + a + LANES)}, v + a, queries + a, row);
        }
        if (a < whole) add_columns(sums, lanes(key + a), lanes(v + a), queries + a, row);
        if (rest) add_columns(sums, some_lanes(key + whole, rest), lanes(v + whole), queries + whole, row);
        UNROLLED for (int r = 0; r < ROWS; ++r) scores[r * padded + s] = sum_of_v - 2.0f * sum_of(sums[r]);
    }
}

// The weighted means of values for ROWS rows of weights.
template <int ROWS, typename T, typename K>
__attribute__((noinline)) void mix(const float* weights, const K* values, const float* seen, T* contexts,
                                   int64_t padded, const AdditiveSizes of) {
    constexpr int VECTORS = 4;
    const auto of_columns = [=](int64_t start, auto vectors, const auto& read, const auto& write) {
        constexpr int COUNT = decltype(vectors)::value;
        Lanes sums[ROWS][COUNT] = {};
        for (int64_t s = 0; s < of.positions; ++s) {
            if (!(seen[s] > 0.0f)) continue;
            Lanes value[COUNT];
            UNROLLED for (int i = 0; i < COUNT; ++i) value[i] = read(values + s * of.value_width + start + i * LANES);
            UNROLLED for (int r = 0; r < ROWS; ++r) {
                const float weight = weights[r * padded + s];
                UNROLLED for (int i = 0; i < COUNT; ++i) sums[r][i] += weight * value[i];
            }
        }
        UNROLLED for (int r = 0; r < ROWS; ++r) {
            UNROLLED for (int i = 0; i < COUNT; ++i) write(sums[r][i], contexts + r * of.value_width + start + i * LANES);
        }
    };
    const auto some = [=](int64_t start, int64_t count) {
        of_columns(
            start, std::integral_constant<int, 1>(), [=](const K* from) { return some_lanes(from, count); },
            [=](Lanes x, T* to) {
                float entry[LANES];
                std::memcpy(entry, &x, sizeof entry);
                for (int64_t i = 0; i < count; ++i) narrow(entry[i], to[i]);
            });
    };
    int64_t start = 0;
    for (; start + VECTORS * LANES <= of.value_width; start += VECTORS * LANES) {
        of_columns(
            start, std::integral_constant<int, VECTORS>(), [](const K* from) { return lanes(from); },
            [](Lanes x, T* to) {
                float entry[LANES];
                std::memcpy(entry, &x, sizeof entry);
                for (int64_t i = 0; i < LANES; ++i) narrow(entry[i], to[i]);
            });
    }
    for (; start < of.value_width; start += LANES) {
        some(start, of.value_width - start < LANES ? of.value_width - start : LANES);
    }
}

template <typename T, typename K>
void additive_attention(Rows parts, const T* query, const K* keys, const T* v, const K* values, const uint8_t* hidden,
            T* contexts, float* weights, const AdditiveSizes of) {
    const int64_t padded = (of.positions + LANES - 1) / LANES * LANES, row = (of.width + LANES - 1) / LANES * LANES;
    std::vector<float> buffer((QUERIES + 1) * (row + padded));
    float *const wide_v = buffer.data(), *const queries = wide_v + row, *const seen = queries + QUERIES * row;
    float* const scores = seen + padded;
    float sum_of_v = 0.0f;
    for (int64_t a = 0; a < of.width; ++a) sum_of_v += wide_v[a] = wide(v[a]);
    const int64_t of_memory = parts_of(of);
    for (int64_t part = parts.start; part < parts.end; ++part) {
        const int64_t m = part / of_memory, end = (m + 1) * of.beams, n = m * of.beams + part % of_memory * QUERIES;
        for (int64_t s = 0; s < of.positions; ++s) seen[s] = hidden[m * of.positions + s] ? 0.0f : 1.0f;
        const K* const key = keys + m * of.positions * of.width;
        const K* const value = values + m * of.positions * of.value_width;
        const auto run = [&](auto of_rows) {
            constexpr int ROWS = decltype(of_rows)::value;
            for (int64_t r = 0; r < ROWS; ++r) {
                const T* const q = query + (n + r) * of.width;
                float* const exp_query = queries + r * row;
#pragma omp simd
                for (int64_t a = 0; a < of.width; ++a) exp_query[a] = exp_of(2.0f * wide(q[a]));
            }
            score_exp_keys<ROWS>(queries, key, wide_v, sum_of_v, seen, scores, padded, of);
            for (int64_t r = 0; r < ROWS; ++r) {
                softmax(scores + r * padded, seen, padded);
                std::memcpy(weights + (n + r) * of.positions, scores + r * padded, of.positions * sizeof(float));
            }
            mix<ROWS>(scores, value, seen, contexts + n * of.value_width, padded, of);
        };
        switch (end - n) {
            case 1: run(std::integral_constant<int, 1>()); break;
            case 2: run(std::integral_constant<int, 2>()); break;
            case 3: run(std::integral_constant<int, 3>()); break;
            case 4: run(std::integral_constant<int, 4>()); break;
            default: run(std::integral_constant<int, QUERIES>());
        }
    }
}

// The same with a memory in bfloat16.
template <typename... Others>
void additive_attention_narrow(Rows parts, Others... others) {
    additive_attention(parts, others...);
}

template <typename T>
inline float row_maximum(const T* row, int64_t tokens) {
    float most = -INFINITY;
#pragma omp simd reduction(max : most)
    for (int64_t v = 0; v < tokens; ++v) {
        const float logit = wide(row[v]);
        most = logit > most ? logit : most;
    }
    return most;
}

// The first of the largest entries; as in PyTorch, NaN is larger than any number.
template <typename T>
void argmax(const T* logits, int64_t* index_of, int64_t rows, int64_t tokens) {
    for (int64_t n = 0; n < rows; ++n) {
        const T* const row = logits + n * tokens;
        const float most = row_maximum(row, tokens);
        int32_t is_lost = 0;
#pragma omp simd reduction(| : is_lost)
        for (int64_t v = 0; v < tokens; ++v) is_lost |= wide(row[v]) != wide(row[v]);
        const auto is_it = [&](int64_t v) { return is_lost ? wide(row[v]) != wide(row[v]) : wide(row[v]) == most; };
        index_of[n] = 0;
        for (int64_t start = 0; start < tokens; start += 8 * LANES) {
            const int64_t end = start + 8 * LANES < tokens ? start + 8 * LANES : tokens;
            int64_t index = end;
            for (int64_t v = end; v-- > start;) index = is_it(v) ? v : index;
            if (index < end) {
                index_of[n] = index;
                break;
            }
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
#if HAS_PRODUCT
        Normalizer normalizer;
        for (int64_t first = 0; first < tokens; first += BLOCK) {
            __m512 values[VECTORS];
            __mmask16 there[VECTORS];
            for (int v = 0; v < VECTORS; ++v) {
                there[v] = there_are(first + v * LANES, tokens);
                values[v] = load(there[v], row + first + v * LANES);
            }
            normalizer.add(values, there, true);
        }
        result[n] = normalizer.result();
#else
        const float most = row_maximum(row, tokens);
        if (std::isinf(most)) {
            result[n] = most;
            continue;
        }
        float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
        for (int64_t v = 0; v < tokens; ++v) sum += exp_of(wide(row[v]) - most);
        result[n] = most + std::log(sum);
#endif
    }
}

}  // namespace

// Each function for both types of numbers, as Python calls them.
#define FOR_BOTH(NAME, PARAMETERS, ...)                                     \
    extern "C" void NAME##_float32 PARAMETERS(float) { NAME(__VA_ARGS__); } \
    extern "C" void NAME##_bfloat16 PARAMETERS(bfloat16) { NAME(__VA_ARGS__); }

// The same with COUNT rows of NUMBERS entries each, shared out among threads.
#define SHARED_FOR_BOTH(NAME, PARAMETERS, COUNT, NUMBERS, ...)                            \
    extern "C" void NAME##_float32 PARAMETERS(float) {                                    \
        shared_out(COUNT, NUMBERS, [=](Rows part) { NAME(part, __VA_ARGS__); });          \
    }                                                                                     \
    extern "C" void NAME##_bfloat16 PARAMETERS(bfloat16) {                                \
        shared_out(COUNT, NUMBERS, [=](Rows part) { NAME(part, __VA_ARGS__); });          \
    }

#define ATTEND(T)                                                                                               \
    (const T* query, int64_t query_row, int64_t query_head, const T* keys, const T* values, int64_t memory_row, \
     int64_t memory_head, int64_t memory_position, const uint8_t* hidden, T* context, int64_t rows,             \
     int64_t beams, int64_t heads, int64_t positions, int64_t width, float scale)
FOR_BOTH(attend, ATTEND, width, query, query_row, query_head, keys, values, memory_row, memory_head, memory_position,
         hidden, context, rows, beams, heads, positions, width, scale)

#define ATTEND_TO_STEPS(T)                                                                                       \
    (const T* query, int64_t query_row, const T* const* steps, int64_t step_row, const int64_t* backpointers,    \
     T* context, int64_t rows, int64_t heads, int64_t positions, int64_t width, float scale)
FOR_BOTH(attend_to_steps, ATTEND_TO_STEPS, width, query, query_row, steps, step_row, backpointers, context, rows, heads,
         positions, width, scale)

#define QUANTIZE(T) (const T* x, int8_t* values, float* scale, int64_t rows, int64_t inputs)
FOR_BOTH(quantize, QUANTIZE, x, values, scale, rows, inputs)

#define PRODUCT(T)                                                                                             \
    (const T* x, const int8_t* weight, const int32_t* shift, const float* output_scale, const T* bias, T* out, \
     int onto, int64_t rows, int64_t inputs, int64_t outputs)
FOR_BOTH(product, PRODUCT, x, weight, shift, output_scale, bias, out, onto != 0, rows, inputs, outputs)

#define TOP_OUTPUTS(T)                                                                                   \
    (const T* x, const int8_t* weight, const int32_t* shift, const float* output_scale, const T* bias,      \
     float* values, int64_t* indices, float* normalizers, int64_t rows, int64_t inputs, int64_t outputs,     \
     int64_t count)
FOR_BOTH(top_outputs, TOP_OUTPUTS, x, weight, shift, output_scale, bias, values, indices, normalizers, rows, inputs,
         outputs, count)

#define DEQUANTIZE(T)                                                                                            \
    (const int32_t* product, const float* row_scale, const float* output_scale, const T* bias, T* out, int onto, \
     int64_t rows, int64_t outputs)
FOR_BOTH(dequantize, DEQUANTIZE, product, row_scale, output_scale, bias, out, onto != 0, rows, outputs)

#define LSTM_STEP(T)                                                                                       \
    (const T* const* x, const int64_t* inputs, const int8_t* const* weights, const int32_t* const* shifts, \
     const float* const* scales, int64_t parts, const float* bias, const T* cell, T* hidden, T* new_cell,  \
     int64_t rows, int64_t width)
FOR_BOTH(lstm_step, LSTM_STEP, x, inputs, weights, shifts, scales, parts, bias, cell, hidden, new_cell, rows, width)

#define ADDITIVE(T)                                                                                        \
    (const T* query, const T* keys, const T* v, T* scores, int64_t rows, int64_t beams, int64_t positions, \
     int64_t width)
SHARED_FOR_BOTH(additive, ADDITIVE, rows, positions * width, query, keys, v, scores, beams, positions, width)

#define ADDITIVE_ATTENTION(T, K)                                                                                     \
    (const T* query, const K* keys, const T* v, const K* values, const uint8_t* hidden, T* contexts, float* weights, \
     int64_t memories, int64_t beams, int64_t positions, int64_t width, int64_t value_width)
#define ADDITIVE_SIZES \
    AdditiveSizes { beams, positions, width, value_width }
#define ADDITIVE_ATTENTION_SAME(T) ADDITIVE_ATTENTION(T, T)
#define ADDITIVE_ATTENTION_NARROW(T) ADDITIVE_ATTENTION(T, bfloat16)
SHARED_FOR_BOTH(additive_attention, ADDITIVE_ATTENTION_SAME, memories* parts_of(ADDITIVE_SIZES),
                QUERIES* positions* width, query, keys, v, values, hidden, contexts, weights, ADDITIVE_SIZES)
SHARED_FOR_BOTH(additive_attention_narrow, ADDITIVE_ATTENTION_NARROW, memories* parts_of(ADDITIVE_SIZES),
                QUERIES* positions* width, query, keys, v, values, hidden, contexts, weights, ADDITIVE_SIZES)

#define SHORTLIST(T)                                                                                                  \
    (const T* x, const T* weight, const T* bias, const int64_t* lists, const int64_t* lengths, T* out, int64_t first, \
     int64_t rows, int64_t beams, int64_t columns, int64_t inputs)
#define LISTS Lists{lists, lengths, first, rows, beams, columns}
FOR_BOTH(shortlist, SHORTLIST, LISTS, x, weight, bias, out, inputs)

#define SHORTLIST_INT8(T)                                                                                         \
    (const T* x, const int8_t* weight, const int32_t* shift, const float* output_scale, const T* bias,          \
     const int64_t* lists, const int64_t* lengths, T* out, int64_t first, int64_t rows, int64_t beams,          \
     int64_t columns, int64_t inputs)
FOR_BOTH(shortlist_int8, SHORTLIST_INT8, LISTS, x, weight, shift, output_scale, bias, out, inputs)

#define LOG_NORMALIZER(T) (const T* logits, float* result, int64_t rows, int64_t tokens)
FOR_BOTH(log_normalizer, LOG_NORMALIZER, logits, result, rows, tokens)

#define ARGMAX(T) (const T* logits, int64_t* index_of, int64_t rows, int64_t tokens)
FOR_BOTH(argmax, ARGMAX, logits, index_of, rows, tokens)

#define LARGEST(T) (const T* x, float* values, int64_t* indices, int64_t rows, int64_t tokens, int64_t count)
FOR_BOTH(largest, LARGEST, x, values, indices, rows, tokens, count)

extern "C" int has_product() { return HAS_PRODUCT; }
