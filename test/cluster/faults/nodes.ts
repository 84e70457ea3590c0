/** Nodes that end, hang, or are cut off. */
import { type NodeName, nodesOf, type RegionCode } from '../layout.ts'
import { findWrongRecords } from '../names.ts'
import { awaitTruth } from '../truth.ts'
import { type Fault, unnoticed } from './fault.ts'

export function killNodes(kind: 'kill-node' | 'kill-region', names: readonly NodeName[]): Fault {
  return {
    ...unnoticed,
    kind,
    text: `kill ${names.join(' and ')}`,
    missing: names,
    parts: { breaks: names, needs: ['database'] },
    stopsServing: true,
    async begin(cluster) {
      await Promise.all(names.map((name) => cluster.program(name).kill()))
      return async () => {
        for (const name of names) cluster.program(name).start()
        for (const name of names) await cluster.untilReady(name)
      }
    },
  }
}

export function pauseNode(name: NodeName): Fault {
  return {
    ...unnoticed,
    kind: 'pause-node',
    text: `stop ${name} without ending it`,
    missing: [name],
    parts: { breaks: [name], needs: ['database'] },
    stopsServing: true,
    async begin(cluster) {
      cluster.program(name).pause()
      return async () => {
        cluster.program(name).resume()
        await cluster.untilReady(name)
      }
    },
  }
}

/** The node does not reach control, but its clients reach it. */
export function cutNode(name: NodeName): Fault {
  return {
    ...unnoticed,
    kind: 'cut-node',
    text: `cut ${name} off from control`,
    missing: [name],
    parts: { breaks: [name], needs: ['database'] },
    cutsNetwork: true,
    begin: async (cluster) => asyncHeal([cluster.network.cut(cluster.host(name), cluster.host('balancer'))]),
  }
}

export function isolateNode(name: NodeName): Fault {
  return {
    ...unnoticed,
    kind: 'isolate-node',
    text: `cut ${name} off from everything`,
    missing: [name],
    parts: { breaks: [name], needs: ['database'] },
    stopsServing: true,
    cutsNetwork: true,
    begin: async (cluster) => asyncHeal([cluster.network.isolate(cluster.host(name))]),
  }
}

/** Restarts the nodes of a region one after the other, as an update does. Clients must not notice. */
export function restartNodes(region: RegionCode): Fault {
  const names = nodesOf(region)
  return {
    ...unnoticed,
    kind: 'restart-nodes',
    text: `restart ${names.join(', then ')}`,
    // A node leaves once control has changed DNS, and ends once it has delivered.
    parts: { breaks: names, needs: ['database', 'dns', 'storage'] },
    async begin(cluster) {
      for (const name of names) {
        await cluster.program(name).stop()
        cluster.program(name).start()
        await cluster.untilReady(name)
        // As docs/operations.md says. A node that leaves before would be the last one in DNS, and would not wait for its clients.
        await awaitTruth(() => findWrongRecords(cluster, (endpoint) => nodesOf(endpoint.region)))
      }
      return async () => undefined
    },
  }
}

export function asyncHeal(heals: readonly (() => void)[]): () => Promise<void> {
  return async () => {
    for (const heal of heals) heal()
  }
}
