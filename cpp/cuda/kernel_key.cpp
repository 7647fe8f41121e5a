// Hashes what a compiled kernel depends on.
#include "cuda/kernel_key.h"

#include "core/build_info.h"

namespace rlx::cuda {
namespace {

// The count too, so that neighbouring lists cannot be confused.
void add_texts(Sha256& hash, std::span<const std::string> texts) {
  hash.add_text(std::to_string(texts.size()));
  for (const std::string& text : texts) hash.add_text(text);
}

}  // namespace

Digest digest_of(const KernelKey& key) {
  Sha256 hash;
  hash.add_text(build_info().version);
  hash.add_text(key.compilers);
  hash.add_text(key.name);
  hash.add_text(key.text);
  add_texts(hash, key.options);
  add_texts(hash, key.entries);
  hash.add(std::as_bytes(key.headers));
  return hash.finish();
}

Digest digest_of(std::span<const NamedText> headers) {
  Sha256 hash;
  for (const NamedText& header : headers) {
    hash.add_text(header.name);
    hash.add_text(header.text);
  }
  return hash.finish();
}

}  // namespace rlx::cuda
