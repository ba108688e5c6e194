#include "codec/row_block.hpp"

#include <spdlog/fmt/fmt.h>

#include "core/error.hpp"

namespace hf {
namespace {

struct Sizes {
  std::size_t id = 0, row = 0;
};
Sizes sizes_of(MessageKind kind, RowFormat format, std::uint32_t dim) {
  const BlockParts parts = block_parts(kind);
  const std::size_t row = bytes_per_row(format, dim);  // a pull too must name a format that can be answered
  return {parts.ids ? sizeof(RowId) : 0, parts.rows ? row : 0};
}

}  // namespace

std::size_t bytes_per_row(RowFormat format, std::uint32_t dim) {
  switch (format) {
    case RowFormat::f32:
      return std::size_t{dim} * sizeof(float);
  }
  throw MpiError(fmt::format("row_format: expected 0 (f32), found {}", static_cast<int>(format)));
}

std::uint32_t widest_row(MessageKind kind, RowFormat format, std::size_t body_bytes) {
  const Sizes one = sizes_of(kind, format, 1);
  return body_bytes < one.id ? 0 : static_cast<std::uint32_t>((body_bytes - one.id) / one.row);
}

std::uint32_t RowBlockWriter::capacity(MessageKind kind, RowFormat format, std::uint32_t dim,
                                       std::size_t body_bytes) {
  const Sizes sizes = sizes_of(kind, format, dim);
  HF_CHECK(sizes.id + sizes.row > 0, "a block of ids or rows");
  return static_cast<std::uint32_t>(body_bytes / (sizes.id + sizes.row));
}

RowBlockWriter::RowBlockWriter(std::span<std::byte> body, MessageKind kind, RowFormat format,
                               std::uint32_t dim, std::uint32_t rows)
    : body_(body), kind_(kind), format_(format), rows_(rows) {
  const Sizes sizes = sizes_of(kind, format, dim);
  ids_bytes_ = rows * sizes.id;
  row_bytes_ = sizes.row;
  HF_CHECK(ids_bytes_ + rows * row_bytes_ <= body.size(),
           "a block of rows larger than the body of a message");
}

void RowBlockWriter::describe(MessageHeader& header) const noexcept {
  header.kind = kind_;
  header.rows = rows_;
  header.row_format = format_;
  header.body_bytes = static_cast<std::uint32_t>(ids_bytes_ + rows_ * row_bytes_);
}

RowBlockView::RowBlockView(const MessageHeader& header, std::span<const std::byte> body, std::uint32_t dim)
    : body_(body), rows_(header.rows) {
  const Sizes sizes = sizes_of(header.kind, header.row_format, dim);
  ids_bytes_ = rows_ * sizes.id;
  row_bytes_ = sizes.row;
  if (body.size() != ids_bytes_ + rows_ * row_bytes_)
    throw MpiError(fmt::format("a {} of {} rows for table {}: expected {} bytes, found {}",
                               to_string(header.kind), rows_, header.table, ids_bytes_ + rows_ * row_bytes_,
                               body.size()));
}

}  // namespace hf
