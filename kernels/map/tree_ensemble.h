// Decision trees: an item is one share of the trees, voting on one row of x.
#pragma once

#include "kernels/include/types.h"
#include "kernels/params/map.h"

namespace rlx::map {

// As it lies in the table of nodes. A child c < 0 is leaf -1 - c.
template <class T> struct TreeNode {
  T split;
  int test;  // feature; from bit 28 on its mode, and 8 where NaN takes the true branch
  int yes, no;
};

template <class T> RLX_FN int next_node(const TreeNode<T>& node, const T* row) {
  const T x = row[node.test & 0x0fffffff];
  const int flags = int(unsigned(node.test) >> 28);
  bool yes = false;
  switch (flags & 7) {
    case 0: yes = x <= node.split; break;
    case 1: yes = x < node.split; break;
    case 2: yes = x >= node.split; break;
    case 3: yes = x > node.split; break;
    case 4: yes = x == node.split; break;
    default: yes = x != node.split; break;
  }
  if ((flags & 8) && x != x) yes = true;
  return yes ? node.yes : node.no;
}

// x [N, F], nodes int32 [M, words of a TreeNode], roots int32 [trees], leaves int32 [L + 1] (where
// the votes of each begin), targets int32 [V], weights [V] -> double [N, shares, targets].
// ints: 0 for sums, 1 minima, 2 maxima. Items: shares, N, so that a share's nodes stay in cache.
template <class T> RLX_FN void tree_ensemble(const params::Map& p, long long item) {
  const params::MapOperand &x = p.operands[0], &y = p.operands[6];
  const auto* nodes = static_cast<const TreeNode<T>*>(p.operands[1].data);
  const int* roots = static_cast<const int*>(p.operands[2].data);
  const int* leaves = static_cast<const int*>(p.operands[3].data);
  const int* targets = static_cast<const int*>(p.operands[4].data);
  const T* weights = static_cast<const T*>(p.operands[5].data);
  const long long share = item / x.shape[0], row = item % x.shape[0];
  const long long trees = p.operands[2].shape[0], shares = y.shape[1];
  const T* from = static_cast<const T*>(x.data) + row * x.shape[1];
  double* to = static_cast<double*>(y.data) + (row * shares + share) * y.shape[2];
  const long long kind = p.ints[0];
  const double endless = double(scalar::from_bits(0x7f800000u));
  const double first = kind == 0 ? 0.0 : kind == 1 ? endless : -endless;
  for (long long k = 0; k < y.shape[2]; ++k) to[k] = first;
  constexpr int lanes = 8;  // walks that wait for memory together
  const long long end = trees * (share + 1) / shares;
  for (long long tree = trees * share / shares; tree < end; tree += lanes) {
    const int count = end - tree < lanes ? int(end - tree) : lanes;
    int at[lanes];
    bool walking = false;
    for (int i = 0; i < count; ++i) walking |= (at[i] = roots[tree + i]) >= 0;
    while (walking) {
      walking = false;
      for (int i = 0; i < count; ++i) {
        if (at[i] >= 0) walking |= (at[i] = next_node(nodes[at[i]], from)) >= 0;
      }
    }
    for (int i = 0; i < count; ++i) {
      for (int v = leaves[-1 - at[i]]; v < leaves[-at[i]]; ++v) {
        double& sum = to[targets[v]];
        const double weight = double(weights[v]);
        if (kind == 0) sum += weight;
        else if (kind == 1) sum = weight < sum ? weight : sum;
        else sum = weight > sum ? weight : sum;
      }
    }
  }
}

}  // namespace rlx::map
