// Operations of a search between its matrix products, each in one pass over memory.
//
// A row of a result is computed only from its own row of the input, and in an order that does not depend on other rows:
// a sentence does not depend on its batch. Shapes are as in Python: N rows, H heads,
// S positions, A width of a head, I inputs, O outputs, D width of a state. Loops are written for the compiler to
// vectorise.

#include <dlfcn.h>

#include <cstdint>
#include <cstring>
#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#if defined(__AVX__)
#include <immintrin.h>
#endif

#if defined(__AVX512VNNI__) && defined(__AVX512BW__) && defined(__AVX512VL__)
#define HAS_VNNI
#endif

namespace {

// A function of the OpenMP that PyTorch has loaded, whichever it is, or null: found late, because this library may have
// been loaded before. Threads of our own would wait for cores on which PyTorch's stay awake for some milliseconds.
template <typename Function>
Function* of_openmp(const char* name) {
    return reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
}

// Calls run(part) for each part, which are shared out to as many threads, or to fewer if there are no more.
template <typename Run>
void in_parallel(int64_t parts, const Run& run) {
    using Job = std::pair<const Run*, int64_t>;
    static void (*parallel)(void (*)(void*), void*, unsigned, unsigned);
    static int (*thread)(), (*threads)();
    if (parts > 1 && !parallel) {
        thread = of_openmp<int()>("omp_get_thread_num"), threads = of_openmp<int()>("omp_get_num_threads");
        parallel = of_openmp<void(void (*)(void*), void*, unsigned, unsigned)>("GOMP_parallel");
    }
    if (parts > 1 && parallel && thread && threads) {
        Job job(&run, parts);
        const auto of_thread = [](void* data) {
            const auto [run, parts] = *static_cast<Job*>(data);
            for (int64_t part = thread(); part < parts; part += threads()) (*run)(part);
        };
        return parallel(of_thread, &job, static_cast<unsigned>(parts), 0);
    }
    for (int64_t part = 0; part < parts; ++part) run(part);
}

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

// Numbers of a vector of the CPU, and vectors of a tile (below).
#ifdef __AVX512F__
constexpr int64_t WIDTH = 16, VECTORS = 4;
#else
constexpr int64_t WIDTH = 8, VECTORS = 2;
#endif
typedef float Floats __attribute__((vector_size(4 * WIDTH), aligned(4), may_alias));
typedef int32_t Integers __attribute__((vector_size(4 * WIDTH), aligned(4), may_alias));
typedef uint16_t Halves __attribute__((vector_size(2 * WIDTH), aligned(2), may_alias));

inline Floats floats_at(const float* p) { return *reinterpret_cast<const Floats*>(p); }
inline Floats floats_at(const bfloat16* p) {
    return (Floats)(__builtin_convertvector(*reinterpret_cast<const Halves*>(p), Integers) << 16);
}

// WIDTH numbers, or zeros behind fewer.
template <typename T>
inline Floats floats_of(const T* p, int64_t count) {
    if (count >= WIDTH) return floats_at(p);
    T some[WIDTH] = {};
    std::copy_n(p, count, some);
    return floats_at(some);
}

#ifdef __clang__
#define SHUFFLED(A, B, ...) __builtin_shufflevector(A, B, __VA_ARGS__)
#else
#define SHUFFLED(A, B, ...) __builtin_shuffle(A, B, Integers{__VA_ARGS__})
#endif

// Numbers of two vectors in turn, those of their first halves plus those of their second ones.
inline Floats paired(Floats a, Floats b) {
#ifdef __AVX512F__
    return SHUFFLED(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23) +
           SHUFFLED(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
#else
    return SHUFFLED(a, b, 0, 8, 1, 9, 2, 10, 3, 11) + SHUFFLED(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
#endif
}

// The sum of each of WIDTH vectors, which it overwrites.
inline Floats summed(Floats* v) {
    UNROLLED for (int64_t half = WIDTH / 2; half > 0; half /= 2)
        UNROLLED for (int64_t i = 0; i < half; ++i) v[i] = paired(v[i], v[i + half]);
    return v[0];
}

// Sums of values that are added at the same time, because each would wait for the last one.
constexpr int64_t CHAINS = 4;

// Attention of rows with all heads of a query side by side, and so their contexts. `find(n, keys, seen)` says where the
// keys of row n are, unless they are those of the row before; `seen` is 0 for positions that are hidden. From keys to
// values it is as far everywhere, and from one head to the next.
template <typename T, typename Find>
__attribute__((noinline)) void attend(const T* query, int64_t query_row, const Find& find, int64_t to_values,
                                      int64_t to_head, T* context, int64_t rows, int64_t heads, int64_t positions,
                                      int64_t width, float scale) {
    const int64_t padded = (positions + LANES - 1) / LANES * LANES;
    std::vector<float> buffer(2 * padded + width);
    std::vector<const T*> keys(positions + CHAINS);
    Floats sums[WIDTH] = {};
    float *const scores = buffer.data(), *const seen = scores + padded, *const q = seen + padded;
    std::fill_n(seen, positions, 1.0f);
    for (int64_t n = 0; n < rows; ++n) {
        find(n, keys.data(), seen);
        std::fill_n(keys.data() + positions, CHAINS, keys[positions - 1]);
        for (int64_t h = 0; h < heads; ++h) {
            for (int64_t a = 0; a < width; ++a) q[a] = wide(query[n * query_row + h * width + a]);
            for (int64_t s = 0; s < positions; s += WIDTH) {
                for (int64_t i = 0; i < std::min(WIDTH, positions - s); ++i) {
                    Floats sum = {};
                    for (int64_t a = 0; a < width; a += WIDTH)
                        sum += floats_of(q + a, width - a) * floats_of(keys[s + i] + h * to_head + a, width - a);
                    sums[i] = sum;
                }
                *reinterpret_cast<Floats*>(scores + s) = summed(sums) * scale;
            }
            softmax(scores, seen, padded);
            for (int64_t a = 0; a < width; a += WIDTH) {
                Floats chains[CHAINS] = {};
                for (int64_t s = 0; s < positions; s += CHAINS) {
                    UNROLLED for (int64_t i = 0; i < CHAINS; ++i)
                        chains[i] += scores[s + i] * floats_of(keys[s + i] + h * to_head + to_values + a, width - a);
                }
                const Floats all = (chains[0] + chains[1]) + (chains[2] + chains[3]);
                for (int64_t i = 0; i < std::min(WIDTH, width - a); ++i)
                    narrow(all[i], context[(n * heads + h) * width + a + i]);
            }
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
    static constexpr int RAISED = 128, GROUP = 4;
#else
    using Integer = int16_t;
    static constexpr int RAISED = 0, GROUP = 2;
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

// A product of rows and a weight.
//
// A weight is packed for it in Python: blocks of BLOCK outputs, in each of them groups of inputs, in each of them the
// group of every output; missing inputs and outputs are 0, in `start` too. The sums of six rows and VECTORS vectors of
// outputs take 24 of the 32 registers of AVX-512, and 12 of 16 else.
constexpr int64_t BLOCK = 64, TILE = 6;
constexpr int64_t TOGETHER = 16 * TILE;  // rows whose results stay in the cache until all their blocks are done

// A vector of sums with the products of a group of inputs.
inline Floats added(Floats sum, const float* x, const float* weight) { return sum + *x * floats_at(weight); }

inline Floats added(Floats sum, const bfloat16* x, const bfloat16* weight) {
    const Integers pairs = *reinterpret_cast<const Integers*>(weight);
#ifdef __AVX512BF16__
    return (Floats)_mm512_dpbf16_ps((__m512)sum, (__m512bh)_mm512_set1_epi32(read<int32_t>(x)), (__m512bh)pairs);
#else
    return sum + wide(x[0]) * (Floats)(pairs << 16) + wide(x[1]) * (Floats)(pairs & -0x10000);
#endif
}

#ifdef HAS_VNNI
inline Integers added(Integers sum, const uint8_t* x, const int8_t* weight) {
    const __m512i quads = _mm512_loadu_si512(weight);
    return (Integers)_mm512_dpbusd_epi32((__m512i)sum, _mm512_set1_epi32(read<int32_t>(x)), quads);
}
#elif defined(__AVX2__)
inline Integers added(Integers sum, const int16_t* x, const int8_t* weight) {
    const __m256i pairs = _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(weight)));
    return sum + (Integers)_mm256_madd_epi16(_mm256_set1_epi32(read<int32_t>(x)), pairs);
}
#endif

// The outputs of a row from its sums, which are scaled if they are of integers.
template <typename Sums, typename T>
inline void scale_row(const int32_t* sums, float row_scale, const float* output_scale, const T* bias, T* to,
                      bool onto, int64_t outputs) {
#pragma omp simd
    for (int64_t o = 0; o < outputs; ++o) {
        float value = read<float>(sums + o);
        if constexpr (std::is_same_v<Sums, Integers>) value = static_cast<float>(sums[o]) * (row_scale * output_scale[o]);
        if (bias) value += wide(bias[o]);
        if (onto) value += wide(to[o]);
        narrow(value, to[o]);
    }
}

// The sums of ROWS rows and one block of outputs. Not inlined, and with nothing but the product: next to anything else
// compilers run out of registers, keep sums in memory, and take twice as long.
template <int ROWS, typename Sums, int GROUP, typename X, typename Weight>
__attribute__((noinline)) void tile(const X* x, int64_t stride, const Weight* weight, const int32_t* start,
                                    int32_t (*to)[BLOCK]) {
    for (int64_t first = 0; first < BLOCK; first += VECTORS * WIDTH) {
        Sums sums[ROWS][VECTORS] = {};
        UNROLLED for (int r = 0; start && r < ROWS; ++r) std::memcpy(sums[r], start + first, sizeof sums[r]);
        for (int64_t i = 0; i < stride; i += GROUP) {
            UNROLLED for (int r = 0; r < ROWS; ++r) {
                UNROLLED for (int v = 0; v < VECTORS; ++v)
                    sums[r][v] = added(sums[r][v], x + r * stride + i, weight + i * BLOCK + (first + v * WIDTH) * GROUP);
            }
        }
        UNROLLED for (int r = 0; r < ROWS; ++r) std::memcpy(to[r] + first, sums[r], sizeof sums[r]);
    }
}

// Multiplications of a product from which on another thread is worth it.
constexpr int64_t WORK = 1 << 19;

template <typename Sums, int GROUP, typename X, typename Weight, typename T>
void tiles(const X* x, int64_t stride, const Weight* weight, const int32_t* start, const float* row_scale,
           const float* output_scale, const T* bias, T* out, bool onto, int64_t rows, int64_t outputs, int64_t threads) {
    constexpr decltype(&tile<1, Sums, GROUP, X, Weight>) TILES[TILE] = {
        tile<1, Sums, GROUP>, tile<2, Sums, GROUP>, tile<3, Sums, GROUP>,
        tile<4, Sums, GROUP>, tile<5, Sums, GROUP>, tile<TILE, Sums, GROUP>};
    const auto of_part = [&](int64_t begin, int64_t end, int64_t from, int64_t to) {
        int32_t sums[TILE][BLOCK];
        for (int64_t some = begin; some < end; some += TOGETHER) {
            for (int64_t first = from; first < to; first += BLOCK) {
                for (int64_t n = some; n < std::min(end, some + TOGETHER); n += TILE) {
                    const int64_t count = std::min({end - n, some + TOGETHER - n, TILE});
                    TILES[count - 1](x + n * stride, stride, weight + first * stride, start ? start + first : start, sums);
                    for (int64_t r = 0; r < count; ++r)
                        scale_row<Sums>(sums[r], row_scale ? row_scale[n + r] : 1.0f,
                                        output_scale ? output_scale + first : nullptr, bias ? bias + first : nullptr,
                                        out + (n + r) * outputs + first, onto, std::min(BLOCK, outputs - first));
                }
            }
        }
    };
    // each part has some rows, or if they are few some blocks of outputs
    const int64_t parts = std::max<int64_t>(1, std::min(threads, rows * stride * outputs / WORK));
    const bool by_rows = rows >= 4 * TILE * parts;
    const int64_t size = by_rows ? TILE : BLOCK, count = ((by_rows ? rows : outputs) + size - 1) / size;
    in_parallel(parts, [&](int64_t part) {
        const int64_t begin = count * part / parts * size, end = count * (part + 1) / parts * size;
        if (by_rows) return of_part(begin, std::min(end, rows), 0, outputs);
        of_part(0, rows, begin, std::min(end, outputs));
    });
}

template <typename T>
void product(const T* x, const int8_t* weight, const int32_t* shift, const float* output_scale, const T* bias, T* out,
             bool onto, int64_t rows, int64_t inputs, int64_t outputs, int64_t threads) {
#ifdef __AVX2__
    static thread_local IntegerRows integers;
    const int64_t stride = (inputs + IntegerRows::GROUP - 1) / IntegerRows::GROUP * IntegerRows::GROUP;
    integers.round(x, rows, inputs, stride);
    tiles<Integers, IntegerRows::GROUP>(integers.values.data(), stride, weight, IntegerRows::RAISED ? shift : nullptr,
                                        integers.scale.data(), output_scale, bias, out, onto, rows, outputs, threads);
#endif
}

// A weight, in integers if it has a scale.
template <typename T>
struct Linear {
    const void* weight;
    const int32_t* shift;
    const float* scale;
    const T* bias;
    int64_t inputs, outputs;

    void operator()(const T* x, T* out, bool onto, int64_t rows, int64_t threads) const {
        if (scale)
            return product(x, static_cast<const int8_t*>(weight), shift, scale, bias, out, onto, rows, inputs, outputs,
                           threads);
        tiles<Floats, 4 / sizeof(T)>(x, inputs, static_cast<const T*>(weight), nullptr, nullptr, nullptr, bias, out,
                                     onto, rows, outputs, threads);
    }
};

template <typename T>
void linear(const T* x, const void* weight, const int32_t* shift, const float* scale, const T* bias, T* out,
            int64_t rows, int64_t inputs, int64_t outputs, int64_t threads) {
    Linear<T>{weight, shift, scale, bias, inputs, outputs}(x, out, false, rows, threads);
}

template <typename T>
void dequantize(const int32_t* product, const float* row_scale, const float* output_scale, const T* bias, T* out,
                int64_t rows, int64_t outputs) {
    for (int64_t n = 0; n < rows; ++n) {
        const int64_t start = n * outputs;
        scale_row<Integers>(product + start, row_scale[n], output_scale, bias, out + start, false, outputs);
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

// What each candidate for the next token pays, and the repetitions that are free after it: see
// nmt/search/repetition.py. The tokens of row n so far begin at said[n * stride].
template <typename T>
void payments(const int64_t* tokens, const int64_t* said, const int64_t* freed, float margin, T* penalty,
              int64_t* freed_then, int64_t rows, int64_t count, int64_t times, int64_t stride) {
    for (int64_t at = 0; at < rows * count; ++at) {
        const int64_t token = tokens[at], row = at / count;
        const int64_t* const end = said + row * stride + times;
        const bool in_a_row = (times > 0 && token == end[-1]) || (times > 2 && token == end[-2] && end[-1] == end[-3]);
        bool again = false;
        for (int64_t back = 1; back + 2 <= times; ++back)
            again |= end[-back] == token && end[-back - 1] == end[-1] && end[-back - 2] == end[-2];
        const bool pays = (in_a_row && freed[2 * row] <= 0) || (again && freed[2 * row + 1] <= 0);
        narrow(pays ? margin : 0.0f, penalty[at]);
        freed_then[2 * at] = freed[2 * row] - in_a_row;
        freed_then[2 * at + 1] = freed[2 * row + 1] - again;
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

// Layer normalisation; without a weight, none.
template <typename T>
struct Norm {
    const T *weight, *bias;

    // Returns where the result is: in `to`, which may be `x`, or without a weight `x` itself.
    __attribute__((noinline)) const T* operator()(const T* x, T* to, int64_t rows, int64_t size, float eps) const {
        const T *const factor_D = weight, *const shift_D = bias;  // which no result overwrites
        for (int64_t n = 0; weight && n < rows; ++n) {
            const T* const from = x + n * size;
            T* const result = to + n * size;
            float sum = 0.0f, squares = 0.0f;
#pragma omp simd reduction(+ : sum)
            for (int64_t d = 0; d < size; ++d) sum += wide(from[d]);
            const float mean = sum / size;
#pragma omp simd reduction(+ : squares)
            for (int64_t d = 0; d < size; ++d) squares += (wide(from[d]) - mean) * (wide(from[d]) - mean);
            const float factor = 1.0f / std::sqrt(squares / size + eps);
#pragma omp simd
            for (int64_t d = 0; d < size; ++d)
                narrow((wide(from[d]) - mean) * factor * wide(factor_D[d]) + wide(shift_D[d]), result[d]);
        }
        return weight ? to : x;
    }
};

template <typename T, typename Function>
inline void apply(T* x, int64_t count, const Function& function) {
#pragma omp simd
    for (int64_t i = 0; i < count; ++i) narrow(function(wide(x[i])), x[i]);
}

inline float silu(float x) { return x / (1.0f + exp_of(-x)); }

// In place: ReLU, SiLU, GELU or SwiGLU, which leaves half as many numbers of each row.
template <typename T>
void activate(T* x, int64_t rows, int64_t width, int64_t kind) {
    if (kind == 0) return apply(x, rows * width, [](float value) { return value > 0.0f ? value : 0.0f; });
    if (kind == 1) return apply(x, rows * width, silu);
    if (kind == 2) return apply(x, rows * width, [](float value) { return value * std::erfc(value * -0.70710678f) / 2; });
    for (int64_t n = 0; n < rows; ++n)
        for (int64_t i = 0; i < width / 2; ++i)
            narrow(silu(wide(x[n * width + i])) * wide(x[n * width + width / 2 + i]), x[n * (width / 2) + i]);
}

// Rotary positions of all queries and keys of rows of 3 x size numbers, whose heads have the same cosines and sines.
template <typename T>
void rotate(T* rows_of_all, const float* cosine, const float* sine, int64_t rows, int64_t size, int64_t width) {
    for (int64_t n = 0; n < rows; ++n) {
        T* const row = rows_of_all + n * 3 * size;
        for (int64_t at = 0; at < 2 * size; at += 2) {
            const int64_t pair = at % width / 2;
            const float first = wide(row[at]), second = wide(row[at + 1]);
            narrow(first * cosine[pair] - second * sine[pair], row[at]);
            narrow(first * sine[pair] + second * cosine[pair], row[at + 1]);
        }
    }
}

// What Python hands over: numbers of 8 bytes.
template <typename T>
struct TransformerLayer {
    Linear<T> self, self_out, source, source_out, rise, fall;
    Norm<T> before[3], after[3];
};

template <typename T>
struct SourceMemory { const T *keys, *values; int64_t row, head, position; };

// Rows from which on another thread takes some of the sentences. If they are fewer, threads share the products.
constexpr int64_t ROWS_OF_THREAD = 48;

// All layers of a Transformer's decoder for one position, with states `x` in place; see transformer_decoder.py. `steps`
// are those of all layers, the last of which and `queries` are written. Some sentences at a time go through all layers,
// so that their states stay in the cache. Without `memories`, all layers of an encoder for all `times` positions, which
// are the rows of a sentence; those that are `hidden` have no weight.
template <typename T>
void transformer_layers(const TransformerLayer<T>* layers, const SourceMemory<T>* memories, int64_t count,
                        T* const* steps, int64_t times, const int64_t* backpointers, const uint8_t* hidden,
                        const float* cosine, const float* sine, T* x, T* queries, int64_t rows, int64_t beams,
                        int64_t heads, int64_t positions, int64_t size, float self_scale, float source_scale,
                        float eps, int64_t activation, int64_t threads) {
    const int64_t parts = std::max<int64_t>(1, std::min({threads, rows / ROWS_OF_THREAD, rows / beams}));
    const int64_t batch = rows / beams;
    if (parts > 1) threads = 1;
    in_parallel(parts, [&](int64_t part) {
        static thread_local std::vector<T> buffer;
        const int64_t width = size / heads, together = std::max(beams, TOGETHER / beams * beams);
        int64_t first = batch * part / parts * beams;
        const int64_t last = batch * (part + 1) / parts * beams;
        buffer.resize(together * (2 * size + std::max(3 * size, layers->rise.outputs)));
        T *const normed = buffer.data(), *const context = normed + together * size, *const inner = context + together * size;
        for (; first < last; first += together) {
            const int64_t some = std::min(together, last - first);
            T* const y = x + first * size;
            for (int64_t l = 0; l < count; ++l) {
                const TransformerLayer<T>& layer = layers[l];
                T* const present = memories ? steps[l * times + times - 1] + first * 3 * size : inner;
                layer.self(layer.before[0](y, normed, some, size, eps), present, false, some, threads);
                if (cosine) rotate(present, cosine, sine, some, size, width);
                const auto find_steps = [&](int64_t n, const T** keys, float* seen) {
                    for (int64_t s = 0; memories && s < times; ++s)
                        keys[s] = steps[l * times + s] + backpointers[(first + n) * times + s] * 3 * size + size;
                    for (int64_t s = 0; !memories && n % beams == 0 && s < times; ++s) {
                        keys[s] = present + (n + s) * 3 * size + size;
                        seen[s] = hidden[first + n + s] ? 0.0f : 1.0f;
                    }
                };
                attend(present, 3 * size, find_steps, size, width, context, some, heads, times, width, self_scale);
                layer.self_out(context, y, true, some, threads);
                layer.after[0](y, y, some, size, eps);
                if (memories) {
                    const SourceMemory<T>& memory = memories[l];
                    T* const query = queries + (l * rows + first) * size;
                    layer.source(layer.before[1](y, normed, some, size, eps), query, false, some, threads);
                    const auto find_source = [&](int64_t n, const T** keys, float* seen) {
                        const int64_t sentence = (first + n) / beams;
                        for (int64_t s = 0; n % beams == 0 && s < positions; ++s) {
                            keys[s] = memory.keys + sentence * memory.row + s * memory.position;
                            if (hidden) seen[s] = hidden[sentence * positions + s] ? 0.0f : 1.0f;
                        }
                    };
                    attend(query, size, find_source, memory.values - memory.keys, memory.head, context, some, heads,
                           positions, width, source_scale);
                    layer.source_out(context, y, true, some, threads);
                    layer.after[1](y, y, some, size, eps);
                }
                layer.rise(layer.before[2](y, normed, some, size, eps), inner, false, some, threads);
                activate(inner, some, layer.rise.outputs, activation);
                layer.fall(inner, y, true, some, threads);
                layer.after[2](y, y, some, size, eps);
            }
        }
    });
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
FOR_BOTH(transformer_layers)
FOR_BOTH(quantize)
FOR_BOTH(linear)
FOR_BOTH(dequantize)
FOR_BOTH(additive)
FOR_BOTH(log_normalizer)
FOR_BOTH(largest)
FOR_BOTH(payments)

#ifdef __AVX2__
extern "C" int group_of_integers() { return IntegerRows::GROUP; }
#else
extern "C" int group_of_integers() { return 0; }
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
