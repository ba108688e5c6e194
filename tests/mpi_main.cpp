// main of the MPI tests. Every rank runs every test; rank 0 prints the course of things, all ranks print
// failures with their number. An exception or a failed ASSERT on one of several ranks ends the job at once:
// the others may wait in a collective call for a rank that has left the test. The exit code is the same on
// every rank: 0, 1, or 77 where rank 0 skipped everything.
#include <gtest/gtest.h>
#include <mpi.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <string>

#include "comm/mpi.hpp"

namespace {

std::string current_test() {
  const testing::TestInfo* test = testing::UnitTest::GetInstance()->current_test_info();
  return test ? std::string(test->test_suite_name()) + "." + test->name() : "outside of any test";
}

[[noreturn]] void end_job() {
  std::fflush(nullptr);
  MPI_Abort(MPI_COMM_WORLD, 1);
  std::_Exit(1);
}

class FailurePrinter : public testing::EmptyTestEventListener {
 public:
  FailurePrinter(int rank, int size) : rank_(rank), size_(size) {}

  // Kept, because GoogleTest holds the lock of its current_test_info() while it reports a failure.
  void OnTestStart(const testing::TestInfo& test) override {
    test_ = std::string(test.test_suite_name()) + "." + test.name();
  }
  void OnTestEnd(const testing::TestInfo&) override { test_ = "outside of any test"; }

  void OnTestPartResult(const testing::TestPartResult& result) override {
    if (!result.failed()) return;
    std::fprintf(stderr, "[rank %d of %d] %s: %s:%d: failed\n%s\n", rank_, size_, test_.c_str(),
                 result.file_name() ? result.file_name() : "?", result.line_number(), result.message());
    std::fflush(stderr);
    if (result.fatally_failed() && size_ > 1) end_job();
  }

 private:
  int rank_, size_;
  std::string test_ = "outside of any test";
};

int run(const hf::MpiSession& session) {
  // An exception must not be turned into a failure after which this rank goes on to the next test on its own.
  GTEST_FLAG_SET(catch_exceptions, false);
  testing::TestEventListeners& listeners = testing::UnitTest::GetInstance()->listeners();
  if (session.rank() != 0) {
    delete listeners.Release(listeners.default_result_printer());
    GTEST_FLAG_SET(output, "");
  }
  listeners.Append(new FailurePrinter(session.rank(), session.size()));

  const bool failed = RUN_ALL_TESTS() != 0;
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  const bool only_skips = all.skipped_test_count() > 0 && all.skipped_test_count() == all.test_to_run_count();
  std::array<int, 2> verdict = {failed ? 1 : 0, session.rank() == 0 && only_skips ? 1 : 0};
  HF_MPI(MPI_Allreduce(MPI_IN_PLACE, verdict.data(), 2, MPI_INT, MPI_MAX, MPI_COMM_WORLD));
  if (verdict[0] != 0) return 1;
  return verdict[1] != 0 ? 77 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  const auto session = std::make_unique<hf::MpiSession>();
  try {
    testing::InitGoogleTest(&argc, argv);
    return run(*session);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "[rank %d of %d] %s: exception: %s\n", session->rank(), session->size(),
                 current_test().c_str(), e.what());
  } catch (...) {
    std::fprintf(stderr, "[rank %d of %d] %s: unknown exception\n", session->rank(), session->size(),
                 current_test().c_str());
  }
  end_job();
}
