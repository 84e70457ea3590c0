import { Gauge, type Registry } from 'prom-client'
import type { Clock } from '#lib/clock.ts'
import { observableMetrics } from '#lib/metrics.ts'
import { nodeLimits } from '#model/limits.ts'
import { listMissingCommits } from '#store/commits/missing-commits.ts'
import { listLargestNodeLags } from '#store/nodes/lag-totals.ts'
import { listNodeNames, listProcessStates, type ProcessState } from '#store/nodes/nodes.ts'
import type { Store } from '#store/store.ts'
import { controlLimits, nodeGoneSeconds } from '../limits.ts'

/** `silent`: a process of the node sent no heartbeat lately. `leaving`: it was asked to stop. */
const states = ['healthy', 'unhealthy', 'leaving', 'silent'] as const

/** Registers how many nodes are in which state, and what the largest of them hold. Read on each scrape. */
export function registerNodeMetrics(
  registry: Registry,
  { store, clock }: { readonly store: Store; readonly clock: Clock },
): void {
  const registers = [registry]
  new Gauge({
    name: 'inlet_nodes',
    help: 'nodes by state; one that is silent for an hour is no longer counted',
    labelNames: ['state'],
    registers,
    async collect() {
      const now = clock.now()
      const rows = await listProcessStates(store.db, now - nodeGoneSeconds * 1000)
      const byNode = Map.groupBy(rows, ({ node_id }) => node_id)
      const found = Map.groupBy(byNode.values(), (processes) => stateOf(processes, now))
      this.reset()
      for (const state of states) this.set({ state }, found.get(state)?.length ?? 0)
    },
  })
  new Gauge({
    name: 'inlet_node_info',
    help: 'names of nodes that have one; the value is always 1',
    labelNames: ['node_id', 'node_name'],
    registers,
    async collect() {
      const named = await listNodeNames(store.db, controlLimits.nodesShown)
      this.reset()
      for (const { id, name } of named) this.set({ node_id: id, node_name: name }, 1)
    },
  })
  new Gauge({
    name: 'inlet_nodes_refusing',
    help: 'nodes that keep their configuration, because the database of control is an older copy or another one',
    registers,
    async collect() {
      const rows = await listProcessStates(store.db, clock.now() - nodeLimits.healthySeconds * 1000)
      this.set(new Set(rows.filter(({ isRefusing }) => isRefusing).map(({ node_id }) => node_id)).size)
    },
  })
  new Gauge({
    name: 'inlet_commits_missing_regions',
    help: 'regions of which the database may lack commits, as after it went back to an older state; control or inlet commits rebuild records them',
    registers,
    async collect() {
      this.set((await listMissingCommits(store.db)).length)
    },
  })
  const values = [
    ['undelivered_bytes', 'bytes of segments on a node that are not committed, open ones included; of the nodes with most'],
    [
      'oldest_undelivered_seconds',
      'seconds since the oldest uncommitted segment on a node was sealed; of the nodes with most bytes',
    ],
  ] as const
  const { gauges } = observableMetrics(registry)
  for (const [name, help] of values)
    gauges(`inlet_node_${name}`, help, 'node_id', async () => {
      const lags = await listLargestNodeLags(store.db, controlLimits.nodesShown)
      return lags.map(({ node_id, undelivered_bytes, oldest_sealed_at: sealedAt }) => {
        const seconds = sealedAt === null ? 0 : Math.max(0, clock.now() - sealedAt) / 1000
        return [node_id, name === 'undelivered_bytes' ? undelivered_bytes : seconds]
      })
    })
}

function stateOf(processes: readonly ProcessState[], now: number): (typeof states)[number] {
  if (processes.some(({ last_seen_at }) => last_seen_at < now - nodeLimits.healthySeconds * 1000)) return 'silent'
  if (processes.some(({ leaving }) => leaving)) return 'leaving'
  return processes.every(({ healthy }) => healthy) ? 'healthy' : 'unhealthy'
}
