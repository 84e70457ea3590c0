/** A node that stands still is removed, and goes on later. */
import { awaitTruth } from '../truth.ts'
import { type Fault, unnoticed } from './fault.ts'
import { findWrongsOfFenced } from './fenced.ts'
import { untilHolding } from './held.ts'

const recoveryMsMax = 30_000

/** Its region has another node. What it held is a loss until it joins again. */
export function thawNode(name: 'fra-1' | 'fra-2'): Fault {
  return {
    ...unnoticed,
    kind: 'thaw-node',
    text: `stop ${name} without ending it, remove it, and let it go on`,
    missing: [name],
    stopsServing: true,
    cutsNetwork: true,
    async begin(cluster) {
      const program = cluster.program(name)
      const heal = cluster.network.cut(cluster.host(name), cluster.host('storage'))
      await untilHolding(cluster, name)
      program.pause()
      heal()
      await cluster.operate(['nodes', 'remove', cluster.nodeId(name), '--yes'])
      return async () => {
        await program.stop()
        await cluster.join(name)
        await cluster.untilReady(name)
      }
    },
    async check(cluster) {
      cluster.program(name).resume()
      return findWrongsOfFenced(cluster, name, 'an operator removed this node')
    },
    async checkAfter(cluster) {
      const { wrong } = await awaitTruth(async () => {
        const losses = await cluster.lossesOf(cluster.nodeId(name))
        return losses.filter(({ state }) => state !== 'recovered').map((loss) => `a loss is left: ${JSON.stringify(loss)}`)
      }, recoveryMsMax)
      return wrong
    },
  }
}
