/** Nodes that end, hang, or are cut off. */
import { listSome } from '../../torture/text.ts'
import type { Cluster } from '../cluster.ts'
import { type ControlName, type NodeName, nodesOf, type RegionCode } from '../layout.ts'
import { findWrongRecords } from '../names.ts'
import { awaitTruth } from '../truth.ts'
import { cutWay, textOfCut, type Way } from './cut.ts'
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
export function cutNode(name: NodeName, way: Way = 'both'): Fault {
  return {
    ...unnoticed,
    kind: 'cut-node',
    text: textOfCut(name, 'control', way),
    missing: [name],
    parts: { breaks: [name], needs: ['database'] },
    cutsNetwork: true,
    begin: async (cluster) => asyncHeal([cutWay(cluster.network, cluster.host(name), cluster.host('balancer'), way)]),
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
  return restartInTurn('restart-nodes', [], nodesOf(region))
}

/** Control processes come first, as an upgrade has them. */
export function restartInTurn(
  kind: 'restart-nodes' | 'rolling-restart',
  controls: readonly ControlName[],
  names: readonly NodeName[],
): Fault {
  let sentBefore = 0
  return {
    ...unnoticed,
    kind,
    text: `restart ${[...controls, ...names].join(', then ')}`,
    // A node leaves once control has changed DNS, and ends once it has delivered.
    parts: { breaks: [...controls, ...names], needs: ['database', 'dns', 'storage'] },
    async begin(cluster) {
      sentBefore = cluster.ledger.sent.length
      for (const name of controls) {
        await cluster.program(name).stop()
        cluster.program(name).start()
        await cluster.untilControlReady(name)
      }
      for (const name of names) {
        await cluster.program(name).stop()
        cluster.program(name).start()
        await cluster.untilReady(name)
        // As docs/operations.md says. A node that leaves before would be the last one in DNS, and would not wait for its clients.
        await awaitTruth(() => findWrongRecords(cluster, (endpoint) => nodesOf(endpoint.region)))
      }
      return async () => undefined
    },
    checkAfter: async (cluster) => findUncertain(cluster, sentBefore),
  }
}

/**
 * Returns the requests of HTTP clients whose outcome they do not know. Without any, the law of the round is strict: each of these requests is
 * committed exactly as often as it was acknowledged.
 */
function findUncertain({ ledger, endpoints }: Cluster, sentBefore: number): readonly string[] {
  const ids = new Set(endpoints.filter(({ protocol }) => protocol === 'http').map(({ id }) => id))
  const uncertain = ledger.sent
    .slice(sentBefore)
    .filter(({ endpointId, attempts }) => ids.has(endpointId) && attempts.includes('unknown'))
    .map(({ id }) => id)
  return uncertain.length === 0 ? [] : [`clients do not know what became of ${uncertain.length} requests: ${listSome(uncertain)}`]
}

export function asyncHeal(heals: readonly (() => void)[]): () => Promise<void> {
  return async () => {
    for (const heal of heals) heal()
  }
}
