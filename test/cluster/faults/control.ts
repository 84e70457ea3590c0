/** Control processes and their database. Nodes and clients must not notice. */
import { errorMessage } from '#lib/error-message.ts'
import { within } from '../../support/within.ts'
import type { Cluster } from '../cluster.ts'
import { type ControlName, controlNames } from '../layout.ts'
import { type Fault, unnoticed } from './fault.ts'
import { asyncHeal } from './nodes.ts'

const requestMsMax = 10_000

export function killControl(name: ControlName): Fault {
  return {
    ...unnoticed,
    kind: 'kill-control',
    text: `kill ${name}`,
    controls: othersThan(name),
    parts: { breaks: [name], needs: [...othersThan(name), 'database'] },
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
export function cutControl(name: ControlName): Fault {
  return {
    ...unnoticed,
    kind: 'cut-control',
    text: `cut ${name} off from the database`,
    // Longer than a node may be silent: connections that it has to this process must not hold it up.
    holdMs: 15_000,
    controls: othersThan(name),
    parts: { breaks: [name], needs: [...othersThan(name), 'database'] },
    cutsNetwork: true,
    async begin(cluster) {
      const databases = (['database-1', 'database-2'] as const).map((database) => cluster.host(database))
      return asyncHeal(databases.map((database) => cluster.network.cut(cluster.host(name), database)))
    },
  }
}

export function restartDatabase(downMs: number): Fault {
  return {
    ...unnoticed,
    kind: 'restart-database',
    text: `kill the database for ${downMs / 1000} s`,
    controls: [],
    parts: { breaks: ['database'], needs: [] },
    holdMs: downMs,
    async begin({ services }) {
      await services.database.killPrimary()
      return () => services.database.startPrimary()
    },
    check: findWrongRefusals,
  }
}

export function failOver(): Fault {
  return {
    ...unnoticed,
    kind: 'fail-over',
    text: 'kill the database and promote its standby',
    parts: { breaks: ['standby'], needs: ['database'] },
    async begin({ services }) {
      await services.database.failOver()
      return () => services.database.rejoin()
    },
  }
}

function othersThan(name: ControlName): readonly ControlName[] {
  return controlNames.filter((other) => other !== name)
}

/** Without a database every call of the management API is refused in a way that clients repeat. */
async function findWrongRefusals(cluster: Cluster): Promise<readonly string[]> {
  const [endpoint] = cluster.endpoints
  const each = controlNames.map(async (name) => {
    const request = cluster.clientOf(name).request('GET', `/v1/endpoints/${endpoint?.id}`)
    try {
      const { status, headers } = await within(requestMsMax, request)
      const retryAfter = headers.get('retry-after')
      return status === 503 && retryAfter !== null ? [] : [`${name} without a database: ${status}, Retry-After ${retryAfter}`]
    } catch (error) {
      return [`${name} without a database: ${errorMessage(error)}`]
    }
  })
  return (await Promise.all(each)).flat()
}
