/** A machine that does not come back. Its disk is mounted on another one, and delivered there under its old identity. */
import { once } from 'node:events'
import { renameSync } from 'node:fs'
import { within } from '../../support/within.ts'
import type { NodeName } from '../layout.ts'
import { type Fault, unnoticed } from './fault.ts'

const adoptionMsMax = 60_000

/** Its region has another node, which goes on running. */
export function loseNode(name: 'fra-1' | 'fra-2'): Fault {
  const rescuer: NodeName = name === 'fra-1' ? 'fra-2' : 'fra-1'
  let adoption: Promise<readonly unknown[]> = Promise.resolve([])
  let lostId = ''
  return {
    ...unnoticed,
    kind: 'lose-node',
    text: `lose ${name}, and adopt its disk on ${rescuer}`,
    missing: [name],
    parts: { breaks: [name], needs: [rescuer, 'database', 'storage'] },
    stopsServing: true,
    async begin(cluster) {
      lostId = cluster.nodeId(name)
      await cluster.program(name).kill()
      const disk = cluster.newPath(`disk-of-${name}`)
      renameSync(cluster.path(name), disk)
      adoption = once(cluster.program(rescuer).runBeside(['node', '--adopt', disk]), 'close')
      return async () => {
        // Without force, control removes only what holds no data.
        await cluster.removeNode(lostId)
        await cluster.join(name)
        await cluster.untilReady(name)
      }
    },
    async check() {
      const [code, signal] = await within(adoptionMsMax, adoption)
      return code === 0 ? [] : [`the adoption ended with ${signal ?? `code ${code}`}`]
    },
  }
}
