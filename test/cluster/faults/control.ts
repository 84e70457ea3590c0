/** Control processes that end or lose their database. Nodes and clients must not notice. */
import { statSync } from 'node:fs'
import { Customer } from '../../support/object-gateway.ts'
import { findWaitingCommits } from '../../torture/segments.ts'
import type { Cluster } from '../cluster.ts'
import { bucket, type ControlName, controlNames, nodeNames, otherControls } from '../layout.ts'
import { readinessOf, storeRecords } from '../load/direct.ts'
import { awaitTruth } from '../truth.ts'
import { cutWay, textOfCut, type Way } from './cut.ts'
import { type Fault, unnoticed } from './fault.ts'
import { asyncHeal } from './nodes.ts'

/** Commits of ten minutes are reported in this time, while new ones come. */
const outboxMsMax = 30_000
/** A commit that waits for longer is stuck. */
const reportMsMax = 5_000

export function killControl(name: ControlName): Fault {
  return {
    ...unnoticed,
    kind: 'kill-control',
    text: `kill ${name}`,
    controls: otherControls(name),
    parts: { breaks: [name], needs: [...otherControls(name), 'database'] },
    async begin(cluster) {
      await cluster.program(name).kill()
      return async () => {
        cluster.program(name).start()
        await cluster.untilControlReady(name)
      }
    },
  }
}

/** The process runs, but does not reach the database. If it leads, the other one has to take over. */
export function cutControl(name: ControlName, way: Way = 'both'): Fault {
  return {
    ...unnoticed,
    kind: 'cut-control',
    text: textOfCut(name, 'the database', way),
    // Longer than a node may be silent: connections that it has to this process must not hold it up.
    holdMs: 15_000,
    controls: otherControls(name),
    parts: { breaks: [name], needs: [...otherControls(name), 'database'] },
    cutsNetwork: true,
    async begin(cluster) {
      const databases = (['database-1', 'database-2'] as const).map((database) => cluster.host(database))
      return asyncHeal(databases.map((database) => cutWay(cluster.network, cluster.host(name), database, way)))
    },
  }
}

/** Nodes and clients go on, whatever the time. */
export function stopControl(downMs: number): Fault {
  let markers = 0
  return {
    ...unnoticed,
    kind: 'no-control',
    catchUpMs: outboxMsMax,
    text: `kill both control processes for ${downMs / 1000} s`,
    controls: [],
    holdMs: downMs,
    async begin(cluster) {
      await Promise.all(controlNames.map((name) => cluster.program(name).kill()))
      markers = await countMarkers(cluster)
      for (const name of nodeNames) await storeRecords(cluster, name)
      return async () => {
        for (const name of controlNames) cluster.program(name).start()
        for (const name of controlNames) await cluster.untilControlReady(name)
      }
    },
    async check(cluster) {
      const problems = (await countMarkers(cluster)) > markers ? [] : ['nothing was delivered without control']
      for (const name of nodeNames) {
        const ready = await readinessOf(cluster.host(name)).catch(String)
        const isRight = typeof ready !== 'string' && ready.status === 200 && ready.body.includes('cut off from control')
        if (!isRight) problems.push(`${name} must go on, and say so: ${typeof ready === 'string' ? ready : ready.body}`)
        if (findWaitingCommits(cluster.path(name)).length === 0) problems.push(`no commit of ${name} waits for control`)
      }
      return problems
    },
    async checkAfter(cluster) {
      const waiting = async () =>
        nodeNames.flatMap((name) => {
          const old = findWaitingCommits(cluster.path(name)).filter((path) => isOlderThan(path, reportMsMax))
          return old.length === 0 ? [] : [`${old.length} commits of ${name} wait although control is back`]
        })
      const { wrong } = await awaitTruth(waiting, outboxMsMax)
      return wrong
    },
  }
}

async function countMarkers({ services, endpoints }: Cluster): Promise<number> {
  const keys = await new Customer(services.gateway).list(bucket)
  return keys.filter(({ key }) => endpoints.some(({ id }) => key.includes(`${id}/commits/`))).length
}

function isOlderThan(path: string, ms: number): boolean {
  const found = statSync(path, { throwIfNoEntry: false })
  return found !== undefined && Date.now() - found.mtimeMs > ms
}
