/** The database of control. Nodes and clients must not notice. */
import { errorMessage } from '#lib/error-message.ts'
import { until } from '../../support/until.ts'
import { within } from '../../support/within.ts'
import type { Cluster } from '../cluster.ts'
import { type ControlName, controlNames, otherControls, ports } from '../layout.ts'
import { awaitTruth } from '../truth.ts'
import { type Fault, unnoticed } from './fault.ts'

const requestMsMax = 10_000
const failOverMsMax = 60_000
const twoPrimaries = 'two servers of the database take writes'

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

/**
 * The server that was ended comes back as what it was: it takes writes, and is older than the other one. One control process reaches only
 * that one, and must not use it. It has used the newer one before: decision 94 leaves open what a process does that never saw it.
 */
export function returnOldPrimary(name: ControlName): Fault {
  let commits = 0
  let heal: () => void = () => undefined
  return {
    ...unnoticed,
    kind: 'old-primary',
    text: `kill the database, promote its standby, start the old server again as a primary, and cut ${name} off from the new one`,
    cutsNetwork: true,
    controls: otherControls(name),
    // The other process may have to take over the lead, and asks all servers every five seconds.
    holdMs: 15_000,
    async begin(cluster) {
      const { database } = cluster.services
      await database.failOver()
      await until(`${name} to use the promoted server`, () => answersFromDatabase(cluster, name), failOverMsMax)
      await database.returnOld()
      commits = await database.countOldCommits()
      heal = cluster.network.cut(cluster.host(name), database.primaryHost)
      return () => database.rejoin()
    },
    async check(cluster) {
      const twice = await findNotes(cluster, otherControls(name), (notes) => notes.includes(twoPrimaries))
      const ready = await readinessOf(cluster, name)
      const written = (await cluster.services.database.countOldCommits()) - commits
      heal()
      return [
        ...twice.map((text) => `must name two primaries: ${text}`),
        ...(ready.status === 200 ? [`${name} must not use the old primary: ${ready.body}`] : []),
        ...(written === 0 ? [] : [`${written} commits were recorded by the old primary`]),
      ]
    },
    async checkAfter(cluster) {
      const { wrong } = await awaitTruth(() => findNotes(cluster, controlNames, (notes) => !notes.includes(twoPrimaries)))
      return wrong.map((text) => `must not name two primaries any more: ${text}`)
    },
  }
}

async function answersFromDatabase(cluster: Cluster, name: ControlName): Promise<boolean> {
  const [endpoint] = cluster.endpoints
  try {
    const { status } = await within(requestMsMax, cluster.clientOf(name).request('GET', `/v1/endpoints/${endpoint?.id}`))
    return status === 200
  } catch {
    return false
  }
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

/** Returns what these control processes say that are not ready, or whose notes are others. */
async function findNotes(
  cluster: Cluster,
  names: readonly ControlName[],
  isRight: (body: string) => boolean,
): Promise<readonly string[]> {
  const each = names.map(async (name) => {
    const { status, body } = await readinessOf(cluster, name)
    return status === 200 && isRight(body) ? [] : [`${name}: ${status} ${body}`]
  })
  return (await Promise.all(each)).flat()
}

/** Returns the status 0 without a response: the balancer ends connections to a process that waits for its database for long. */
async function readinessOf({ installation }: Cluster, name: ControlName) {
  try {
    const url = `${installation.controlOrigin}:${ports.direct[name]}/readyz`
    const response = await fetch(url, { signal: AbortSignal.timeout(requestMsMax) })
    return { status: response.status, body: await response.text() }
  } catch (error) {
    return { status: 0, body: errorMessage(error) }
  }
}
