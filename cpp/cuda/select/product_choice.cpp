// Which kernel does a product, and how: by what each tile and each number of parts of k is expected
// to take. The constants are rounded figures of Hopper; other cards scale by their multiprocessors.
#include "cuda/select/product_choice.h"

#include <cmath>
#include <limits>

namespace rlx::cuda {
namespace {

constexpr double clock = 1700;       // cycles of a microsecond
constexpr double launch_us = 1.0;    // of one more kernel in a recorded graph
constexpr int64_t gemv_threads = 256;
constexpr double sms_memory = 19e3;  // bytes of a microsecond for each multiprocessor, of memory
constexpr double sms_cache = 45e3;   // and of the second-level cache

int chunk_of(int64_t run, int64_t line, const Dims& batch, size_t size) {
  for (int bytes = 16; bytes > int(size); bytes /= 2) {
    const int64_t chunk = bytes / int(size);
    bool fits = run % chunk == 0 && line % chunk == 0;
    for (int64_t stride : batch) fits = fits && stride % chunk == 0;
    if (fits) return int(chunk);
  }
  return 1;
}

double bytes_of(const ProductShape& s) {
  return double(s.batches) * (double(s.m) * double(s.k) * double(size_of(s.a)) +
                              double(s.k) * double(s.n) * double(size_of(s.b))) +
         double(s.result_bytes);
}

double memory_us(const ProductShape& s, const DeviceInfo& card) {
  return bytes_of(s) / (sms_memory * card.multiprocessors);
}

// Of writing the sums of each part and adding them.
double join_us(const ProductShape& s, int64_t splits, const DeviceInfo& card) {
  if (splits == 1) return 0;
  const double sums = double(splits * s.batches) * double(s.m) * double(s.n) * 4;
  return launch_us + 0.5 + 2 * sums / (sms_cache * card.multiprocessors);
}

// Multiplications and additions of a multiprocessor in a cycle.
double tensor_rate(const ProductShape& s, const DeviceInfo& card) {
  const double half = card.capability >= 90 ? 1150 : 850;
  return s.a == DType::float32 ? half / 2 : half;
}

// Parts of k that keep all multiprocessors busy, each a multiple of `unit`.
template <class Cost>
void split(ProductChoice& best, const ProductShape& s, int64_t unit, const Cost& cost) {
  for (int64_t splits = 1; splits <= 64 && (splits == 1 || s.k / splits >= 2 * unit);
       splits *= 2) {
    const int64_t part = ceil_div(ceil_div(s.k, splits), unit) * unit;
    const int64_t parts = ceil_div(s.k, part);
    const double us = cost(parts, part);
    if (us < best.microseconds) {
      best.microseconds = us;
      best.splits = parts;
      best.k_part = part;
    }
  }
}

ProductChoice tensor_cores(const ProductShape& s, const DeviceInfo& card) {
  ProductChoice best;
  best.microseconds = std::numeric_limits<double>::infinity();
  const int64_t size = int64_t(size_of(s.a));
  const bool aligned = s.a_chunk() * size >= 16 && s.b_chunk() * size >= 16;
  for (int form = 0; form < params::tile_form_count; ++form) {
    const TileForm& f = params::tile_forms[form];
    if (f.aligned != aligned) continue;
    ProductChoice made = best;
    const int64_t tiles = ceil_div(s.m, f.m) * ceil_div(s.n, f.n) * s.batches;
    const int64_t unit = f.slice / size;
    const double work = std::max(double(f.m * f.n) * double(unit) / tensor_rate(s, card),
                                 double(f.m + f.n) * f.slice / 40.0);
    const size_t shared = tile_bytes(f, size_of(s.a), s.a_along_k(), s.b_along_k());
    const double resident = size_t(card.shared_per_block) >= 2 * shared ? 2 : 1;
    split(made, s, unit, [&](int64_t parts, int64_t part) {
      const double waves = double(ceil_div(tiles * parts, card.multiprocessors));
      const double turns = std::ceil(waves / resident);
      // A slice takes the time of its products, or of the way to memory where few are under way.
      const double slice = std::max(waves * work, turns * 750 / (f.stages - 1));
      const double cycles = double(part / unit) * slice + turns * 1500 + waves * f.m * f.n / 16;
      const double busy = std::min(1.0, double(tiles * parts) / card.multiprocessors);
      const double own = cycles / clock, memory = memory_us(s, card) / busy;
      // Neither hides the other altogether.
      return launch_us + std::max(own, memory) + std::min(own, memory) / 8 +
             join_us(s, parts, card);
    });
    if (made.microseconds < best.microseconds) best = made, best.form = form;
  }
  best.rung = ProductRung::tensor_cores;
  return best;
}

ProductChoice gemv(const ProductShape& s, const DeviceInfo& card) {
  ProductChoice best;
  best.microseconds = std::numeric_limits<double>::infinity();
  const int64_t chunk = s.b_chunk(), size = int64_t(size_of(s.b));
  const int64_t lanes = std::min<int64_t>(32, 128 / (chunk * size));
  const int64_t columns = s.b_along_k() ? 32 : lanes * chunk;
  const int64_t unit = s.b_along_k() ? 32 * chunk : gemv_threads / lanes;
  const int64_t blocks = ceil_div(s.m, 4) * ceil_div(s.n, columns) * s.batches;
  const double narrow = chunk * size >= 8 ? 1.0 : 3.0;  // loads of less than 8 bytes
  const double rows = s.m == 1 ? 1.0 : double(ceil_div(s.m, 4) * 4);
  const double sums = rows * double(s.n) * double(s.k) * double(s.batches) /
                      (card.multiprocessors * 60.0 * clock);
  split(best, s, unit, [&](int64_t parts, int64_t) {
    const double busy = std::min(1.0, double(blocks * parts) / (1.5 * card.multiprocessors));
    return launch_us + 0.7 + std::max(sums, narrow * memory_us(s, card)) / busy +
           join_us(s, parts, card);
  });
  best.rung = ProductRung::gemv;
  return best;
}

}  // namespace

std::optional<ProductRung> product_rung(std::string_view force) {
  if (force == "tensor cores") return ProductRung::tensor_cores;
  if (force == "gemv") return ProductRung::gemv;
  if (force == "kernel") return ProductRung::tiled;
  return std::nullopt;
}

int ProductShape::a_chunk() const {
  return a_along_k() ? chunk_of(k, a_row, a_batch, size_of(a))
                     : chunk_of(m, a_column, a_batch, size_of(a));
}
int ProductShape::b_chunk() const {
  return b_along_k() ? chunk_of(k, b_column, b_batch, size_of(b))
                     : chunk_of(n, b_row, b_batch, size_of(b));
}

size_t tile_bytes(const TileForm& f, size_t item, bool a_along_k, bool b_along_k) {
  const int64_t size = int64_t(item), k = f.slice / size;
  const auto elements = [&](bool along_k, int64_t extent) {
    const int64_t pad = params::slice_pads[size == 4][along_k] / size;
    return along_k ? extent * (k + pad) : k * (extent + pad);
  };
  const int64_t slices = f.stages * size * (elements(a_along_k, f.m) + elements(b_along_k, f.n));
  return size_t(std::max(slices, int64_t(f.m) * (f.n + params::result_pad) * 4));
}

std::string tensor_cores_refusal(const ProductShape& s, const DeviceInfo& card) {
  const bool half = is_half(s.a);
  if (s.zero_points) return "zero points";
  if (s.a != s.b || (!half && s.a != DType::float32) || s.accumulate != DType::float32) {
    return "tensor cores take no such types";
  }
  if (!half && !s.tf32) return "float32 without TF32";
  if (card.capability < 80) return "the card has no such tensor cores";
  const bool dense = (s.a_along_k() || s.a_row == 1) && (s.b_along_k() || s.b_column == 1);
  if (s.k >= int64_t{1} << 30) return "more columns than tensor cores count";
  return dense && s.k > 0 ? "" : "strided or empty operands";
}

std::string gemv_refusal(const ProductShape& s) {
  const auto takes = [](DType t) { return t == DType::float32 || is_half(t); };
  if (s.zero_points || !takes(s.a) || !takes(s.b) || s.accumulate != DType::float32) {
    return "gemv takes no such types";
  }
  if (s.m > gemv_rows) return "more rows than gemv takes";
  return s.k > 0 && (s.b_along_k() || s.b_column == 1) ? "" : "strided or empty operands";
}

ProductChoice choose_product(const ProductShape& shape, const DeviceInfo& card,
                             std::optional<ProductRung> asked) {
  const std::string no_cores = tensor_cores_refusal(shape, card), no_gemv = gemv_refusal(shape);
  const bool few = asked == ProductRung::gemv, tiled = asked == ProductRung::tiled;
  ProductChoice best;
  if (!few && !tiled && no_cores.empty()) best = tensor_cores(shape, card);
  if (few && no_gemv.empty()) best = gemv(shape, card);
  if (best.rung == ProductRung::tiled) {
    best.reason = tiled ? "" : few ? no_gemv : no_cores;
    if (best.reason.empty()) best.reason = "takes every type, layout and shape";
  } else if (best.rung == ProductRung::gemv) {
    best.reason = "few rows: as fast as B is read";
  } else {
    const TileForm& f = params::tile_forms[best.form];
    best.reason = "tiles of " + std::to_string(f.m) + " x " + std::to_string(f.n);
  }
  if (best.splits > 1) best.reason += ", k in " + std::to_string(best.splits) + " parts";
  return best;
}

}  // namespace rlx::cuda
