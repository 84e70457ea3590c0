/** A machine burns down with its disk. What it had acknowledged and not delivered is in the ledger of losses. */
import { renameSync } from 'node:fs'
import type { Cluster } from '../cluster.ts'
import type { Stored } from '../load/direct.ts'
import { type Fault, unnoticed } from './fault.ts'
import { type Held, readHeld, untilAllReported, untilHolding } from './held.ts'

type Lost = {
  readonly nodeId: string
  readonly held: ReadonlyMap<string, Held>
  /** Losses of an earlier fault: a node that is removed and joins again keeps its id. */
  readonly earlier: ReadonlySet<string>
  /** Records that were lost. */
  readonly stored: readonly Stored[]
}

/**
 * Before the end, control knows everything that the node holds: the store is cut off first, then the clients. So the losses must be exact.
 * Its region has another node.
 */
export function loseDisk(name: 'fra-1' | 'fra-2'): Fault {
  let lost: Lost | undefined
  return {
    ...unnoticed,
    kind: 'lose-disk',
    text: `lose ${name} with its disk, and remove it`,
    missing: [name],
    stopsServing: true,
    cutsNetwork: true,
    async begin(cluster) {
      const { network } = cluster
      const nodeId = cluster.nodeId(name)
      const heals = [network.cut(cluster.host(name), cluster.host('storage'))]
      const stored = await untilHolding(cluster, name)
      heals.push(network.drop(cluster.host(name), network.hub))
      await untilAllReported(cluster, name)
      await cluster.program(name).kill()
      const disk = cluster.newPath(`lost-disk-of-${name}`)
      renameSync(cluster.path(name), disk)
      const earlier = new Set((await cluster.lossesOf(nodeId)).map(({ id }) => id))
      lost = { nodeId, held: readHeld(disk), earlier, stored }
      for (const { requests } of lost.held.values()) {
        cluster.ledger.noteDamage(requests, { reason: `the disk of ${name} was lost`, isSealed: false })
      }
      await cluster.operate(['nodes', 'remove', nodeId, '--yes'])
      return async () => {
        for (const heal of heals) heal()
        await cluster.confirmLosses(nodeId)
        await cluster.join(name)
        await cluster.untilReady(name)
      }
    },
    check: async (cluster) => (lost === undefined ? [] : findWrongLosses(cluster, lost)),
    async checkAfter(cluster) {
      const losses = await cluster.lossesOf(lost?.nodeId ?? '')
      return losses.filter(({ state }) => state === 'open').map((loss) => `is not confirmed: ${JSON.stringify(loss)}`)
    },
  }
}

/** Compares the ledger of losses with the disk that was lost. */
async function findWrongLosses(cluster: Cluster, { nodeId, held, earlier, stored }: Lost): Promise<readonly string[]> {
  const losses = (await cluster.lossesOf(nodeId)).filter(({ id }) => !earlier.has(id))
  const problems = losses.length === held.size ? [] : [`${losses.length} losses of ${held.size} endpoints`]
  for (const loss of losses) {
    const { segments, records } = held.get(loss.endpoint_id) ?? { segments: [], records: 0 }
    if (loss.state !== 'open' || loss.segments !== segments.length || loss.records !== records) {
      problems.push(`a loss of ${segments.length} segments with ${records} records is told as ${JSON.stringify(loss)}`)
    }
  }
  for (const { endpointId, receipt } of stored) {
    const outcome = await cluster.management.ok('GET', `/v1/endpoints/${endpointId}/receipts/${receipt}`)
    if (outcome.state !== 'lost') problems.push(`the receipt of a lost record is ${JSON.stringify(outcome)}`)
  }
  return problems
}
