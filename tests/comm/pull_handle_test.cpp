// What happens to a pull when its handle, its storage or its client goes first. The server of these tests answers a pull
// when it is told to, so that answers come before or after whatever the test does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <memory>
#include <thread>
#include <type_traits>
#include <vector>

#include "comm/parameter_client.hpp"
#include "comm/server_port.hpp"
#include "comm_test_support.hpp"

namespace hf {
namespace {

static_assert(!std::is_copy_constructible_v<PullHandle> && !std::is_copy_assignable_v<PullHandle>);
static_assert(std::is_nothrow_move_constructible_v<PullHandle> &&
              std::is_nothrow_move_assignable_v<PullHandle>);
static_assert(std::is_nothrow_destructible_v<PullHandle>);

constexpr std::uint32_t kDim = 4;
constexpr RowId kBad = 99'999;  // refused by the server
constexpr float kUntouched = -77.0F;

/// Every row holds its id in every column.
class ManualServer {
 public:
  ManualServer(Window& window, const PoolLayout& layout, const RoleMap& roles)
      : port_(window, layout, roles, ServerId{0}, 60), thread_([this] { run(); }) {}
  ~ManualServer() {
    stop_ = true;
    thread_.join();
  }
  void answer_pulls(bool yes) { answering_ = yes; }
  std::uint64_t rows_asked_for() const { return rows_; }

 private:
  struct Asked {
    MessageHeader header;
    std::vector<RowId> ids;
  };
  void run() {
    while (!stop_) {
      while (const auto m = port_.receive(WorkerId{0})) {
        if (m->header.kind == MessageKind::pull) {
          const auto ids = RowBlockView(m->header, m->body).ids();
          pulls_.push_back({m->header, {ids.begin(), ids.end()}});
          rows_ += ids.size();
        } else {
          port_.send_ack(WorkerId{0}, m->header.tag, "");
        }
        port_.release(WorkerId{0});
      }
      for (; answering_ && !pulls_.empty(); pulls_.pop_front()) answer(pulls_.front());
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }
  void answer(const Asked& asked) {
    if (std::find(asked.ids.begin(), asked.ids.end(), kBad) != asked.ids.end())
      return port_.send_error(WorkerId{0}, asked.header.tag, DataError("no such row"));
    RowBlockWriter rows = port_.reply_rows(WorkerId{0}, asked.header, kDim);
    for (std::size_t i = 0; i < asked.ids.size(); ++i)
      std::fill_n(rows.f32_rows() + i * kDim, kDim, static_cast<float>(asked.ids[i]));
    port_.send_rows(WorkerId{0}, asked.header, rows);
  }

  ServerPort port_;
  std::deque<Asked> pulls_;
  std::atomic<bool> stop_{false}, answering_{true};
  std::atomic<std::uint64_t> rows_{0};
  std::thread thread_;
};

class PullHandleTest : public testing::TestWithParam<Transport> {
 protected:
  PullHandleTest() {
    client_ = std::make_unique<ParameterClient>(*window_, layout_, roles_, WorkerId{0}, 16, 30);
    TableSpec spec;
    spec.name = "t";
    spec.rows = 100'000;
    spec.dim = kDim;
    table_ = client_->create_table(spec);
  }
  static std::vector<RowId> ids(RowId from, std::size_t n) {
    std::vector<RowId> v(n);
    for (std::size_t i = 0; i < n; ++i) v[i] = from + i;
    return v;
  }
  static std::vector<float> buffer(std::size_t n) { return std::vector<float>(n * kDim, kUntouched); }
  PullHandle start(const std::vector<RowId>& wanted, std::vector<float>& out) {
    return client_->initiate_pull(table_, wanted, out.data(), 0, kPullUngated);
  }
  static void expect_rows(const std::vector<RowId>& wanted, const std::vector<float>& out) {
    for (std::size_t i = 0; i < out.size(); ++i) ASSERT_EQ(out[i], static_cast<float>(wanted[i / kDim])) << i;
  }
  /// Everything that is on its way has been answered and taken in; the next pull works.
  void expect_all_well() {
    server_.answer_pulls(true);
    client_->flush();
    for (int i = 0; i < 3; ++i) {
      const auto wanted = ids(40 + static_cast<RowId>(i), 1500);  // laps the ring
      auto out = buffer(wanted.size());
      client_->complete_pull(start(wanted, out));
      ASSERT_NO_FATAL_FAILURE(expect_rows(wanted, out));
    }
  }

  RoleMap roles_ = test::role_map("h");
  PoolLayout layout_{roles_, test::smallest_pool(roles_)};
  std::unique_ptr<Window> window_ = make_window(GetParam(), layout_.pool_bytes());
  ManualServer server_{*window_, layout_, roles_};
  std::unique_ptr<ParameterClient> client_;
  TableId table_;
};

TEST_P(PullHandleTest, DroppedBeforeTheAnswerNothingIsWritten) {
  server_.answer_pulls(false);
  const auto wanted = ids(5, 300);
  auto out = buffer(wanted.size());
  { const PullHandle handle = start(wanted, out); }
  ASSERT_NO_FATAL_FAILURE(expect_all_well());
  EXPECT_EQ(out, buffer(wanted.size()));
}

TEST_P(PullHandleTest, DroppedWithFreedStorageTheLateAnswerGoesNowhere) {
  // The address sanitizer watches.
  server_.answer_pulls(false);
  for (int i = 0; i < 5; ++i) {
    const auto wanted = ids(5, 200);
    const auto out = std::make_unique<std::vector<float>>(buffer(wanted.size()));
    const PullHandle handle = start(wanted, *out);
  }
  expect_all_well();
}

TEST_P(PullHandleTest, DroppedAfterTheAnswerIsNoHarm) {
  const auto wanted = ids(5, 100);
  auto out = buffer(wanted.size());
  {
    const PullHandle handle = start(wanted, out);
    client_->flush();
    while (out.back() == kUntouched) client_->pump();
  }
  expect_rows(wanted, out);
  expect_all_well();
}

TEST_P(PullHandleTest, DroppedPullsAskForNothingMore) {
  server_.answer_pulls(false);
  const auto wanted = ids(0, 20'000);  // far more than the ring holds
  auto out = buffer(wanted.size());
  { const PullHandle handle = start(wanted, out); }
  const std::uint64_t before = server_.rows_asked_for();
  ASSERT_NO_FATAL_FAILURE(expect_all_well());
  EXPECT_LT(before, 20'000U);
  EXPECT_LT(server_.rows_asked_for(), 20'000U);
}

TEST_P(PullHandleTest, MovesAndGivesUpWhatItHeld) {
  server_.answer_pulls(false);
  const auto a = ids(10, 50), b = ids(70, 50);
  auto out_a = buffer(50), out_b = buffer(50);
  PullHandle first = start(a, out_a), second = start(b, out_b);
  PullHandle third = std::move(second);
  EXPECT_FALSE(second);  // NOLINT(bugprone-use-after-move): the moved-from state is what is checked
  first = std::move(third);
  EXPECT_FALSE(third);  // NOLINT(bugprone-use-after-move)
  EXPECT_THROW(client_->complete_pull(third), CheckFailed);
  server_.answer_pulls(true);
  client_->complete_pull(first);
  EXPECT_FALSE(first);
  expect_rows(b, out_b);
  EXPECT_EQ(out_a, buffer(50)) << "given up by the assignment";
  EXPECT_THROW(client_->complete_pull(first), CheckFailed) << "completed already";
  expect_all_well();
}

TEST_P(PullHandleTest, OutlivesItsClient) {
  server_.answer_pulls(false);
  const auto wanted = ids(0, 50);
  auto storage = std::make_shared<std::vector<float>>(buffer(50));
  const std::weak_ptr<std::vector<float>> watch = storage;
  PullHandle handle = client_->initiate_pull(table_, wanted, storage->data(), 0, kPullUngated, storage);
  storage.reset();
  client_.reset();
  EXPECT_FALSE(watch.expired());
  handle = PullHandle();
  EXPECT_TRUE(watch.expired());
}

TEST_P(PullHandleTest, KeepsTheStorageUntilTheEnd) {
  for (const bool completed : {true, false}) {
    server_.answer_pulls(false);
    const auto wanted = ids(0, 500);
    auto storage = std::make_shared<std::vector<float>>(buffer(500));
    float* out = storage->data();
    const std::weak_ptr<std::vector<float>> watch = storage;
    PullHandle handle = client_->initiate_pull(table_, wanted, out, 0, kPullUngated, std::move(storage));
    EXPECT_FALSE(watch.expired());
    if (completed) {
      server_.answer_pulls(true);
      client_->complete_pull(handle);
    } else {
      handle = PullHandle();
      expect_all_well();
    }
    EXPECT_TRUE(watch.expired()) << completed;
  }
}

TEST_P(PullHandleTest, AnExceptionInTheMiddleOfSeveralPullsLeavesNothingBehind) {
  for (std::size_t bad = 0; bad < 4; ++bad) {
    std::vector<std::vector<float>> out;
    try {
      std::vector<PullHandle> handles;
      for (std::size_t k = 0; k < 4; ++k) {
        auto wanted = ids(k * 10, 400);
        if (k == bad) wanted.push_back(kBad);
        out.push_back(buffer(wanted.size()));
        handles.push_back(start(wanted, out.back()));
      }
      for (const std::size_t k : {3U, 0U, 1U, 2U}) client_->complete_pull(handles[k]);
      ADD_FAILURE() << "nothing was thrown";
    } catch (const DataError& e) {
      EXPECT_THAT(e.what(), testing::HasSubstr("no such row"));
    }
    out.clear();
    ASSERT_NO_FATAL_FAILURE(expect_all_well());
  }
}

TEST_P(PullHandleTest, AfterATimeoutThePullCanStillBeCompleted) {
  server_.answer_pulls(false);
  const auto wanted = ids(0, 50);
  auto out = buffer(50);
  client_.reset();
  // A client of its own with a short patience; the rings go on where nothing was sent yet.
  const auto window = make_window(GetParam(), layout_.pool_bytes());
  ManualServer server(*window, layout_, roles_);
  ParameterClient client(*window, layout_, roles_, WorkerId{0}, 16, 0.2);
  const TableId table = client.create_table({.name = "t", .rows = 1000, .dim = kDim});
  server.answer_pulls(false);
  PullHandle handle = client.initiate_pull(table, wanted, out.data(), 0, kPullUngated);
  EXPECT_THROW(client.complete_pull(handle), MpiError);
  EXPECT_TRUE(handle);
  server.answer_pulls(true);
  client.complete_pull(handle);
  expect_rows(wanted, out);
}

TEST_P(PullHandleTest, MayBeDroppedByAnotherThread) {
  for (int round = 0; round < 200; ++round) {
    const auto wanted = ids(0, 300);
    auto storage = std::make_shared<std::vector<float>>(buffer(300));
    float* out = storage->data();
    PullHandle handle = client_->initiate_pull(table_, wanted, out, 0, kPullUngated, std::move(storage));
    std::thread other([h = std::move(handle), round]() mutable {
      std::this_thread::sleep_for(std::chrono::microseconds(round % 50));
      h = PullHandle();
    });
    client_->flush();
    other.join();
  }
  expect_all_well();
}

INSTANTIATE_TEST_SUITE_P(Transports, PullHandleTest, testing::Values(Transport::shm, Transport::mpi),
                         [](const auto& i) { return i.param == Transport::shm ? "shm" : "mpi"; });

}  // namespace
}  // namespace hf
