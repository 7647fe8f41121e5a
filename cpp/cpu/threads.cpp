// Counts cores by affinity mask and CPU topology, and reads the cgroup's CPU quota.
#include "cpu/threads.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <set>
#include <string>
#include <thread>

namespace rlx::cpu {
namespace {

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// Hyperthreads of one core share its vector units: a core counts once.
int cores_in_affinity_mask() {
  cpu_set_t mask;
  if (sched_getaffinity(0, sizeof mask, &mask) != 0) {
    return int(std::thread::hardware_concurrency());
  }
  std::set<std::string> cores;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &mask)) continue;
    const std::string siblings = first_line("/sys/devices/system/cpu/cpu" + std::to_string(cpu) +
                                            "/topology/thread_siblings_list");
    cores.insert(siblings.empty() ? "cpu" + std::to_string(cpu) : siblings);
  }
  return int(cores.size());
}

// CPUs' worth of time that a control group grants in each period; infinity without a limit.
double quota_of(const std::string& quota, const std::string& period) {
  if (quota.empty() || quota == "max" || quota[0] == '-') return INFINITY;
  const double per = std::strtod(period.c_str(), nullptr);
  return per > 0 ? std::strtod(quota.c_str(), nullptr) / per : INFINITY;
}

double quota_of_group(const std::string& path) {
  const std::string both = first_line("/sys/fs/cgroup" + path + "/cpu.max");
  const size_t space = both.find(' ');
  if (space == std::string::npos) return INFINITY;
  return quota_of(both.substr(0, space), both.substr(space + 1));
}

// Version 2 limits each ancestor too; inside a container the own group is often the root.
double cgroup_quota() {
  double least = quota_of(first_line("/sys/fs/cgroup/cpu/cpu.cfs_quota_us"),
                          first_line("/sys/fs/cgroup/cpu/cpu.cfs_period_us"));
  least = std::min(least, quota_of_group(""));
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    if (line.rfind("0::", 0) != 0) continue;
    for (std::string path = line.substr(3); path.size() > 1;
         path.resize(path.find_last_of('/'))) {
      least = std::min(least, quota_of_group(path));
    }
  }
  return least;
}

}  // namespace

int available_threads() {
  static const int count = [] {
    const double quota = std::ceil(std::min(cgroup_quota(), 4096.0));
    return std::max(1, std::min(cores_in_affinity_mask(), int(quota)));
  }();
  return count;
}

}  // namespace rlx::cpu
