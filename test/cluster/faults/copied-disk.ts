/** A copy of the disk of a node that is cut off is adopted elsewhere, while the node goes on. */
import { once } from 'node:events'
import { cpSync, renameSync } from 'node:fs'
import { basename, dirname } from 'node:path'
import { errorMessage } from '#lib/error-message.ts'
import { until } from '../../support/until.ts'
import { within } from '../../support/within.ts'
import type { Cluster } from '../cluster.ts'
import type { HostName, NodeName } from '../layout.ts'
import { postTo, storeRecords } from '../load/direct.ts'
import { type Fault, unnoticed } from './fault.ts'
import { findWrongsOfFenced } from './fenced.ts'
import { type Held, readHeld } from './held.ts'

/** The adoption waits until the node is silent for long enough, and delivers the copy. */
const adoptionMsMax = 90_000
/** Control begins a minute after it has refused the machine. */
const recoveryMsMax = 120_000
/** Lines in one request. */
const linesMax = 500

type Cut = 'control' | 'control and the object store'

/** Its region has another node, on which the copy is adopted. */
export function adoptCopy(name: 'fra-1' | 'fra-2', cut: Cut): Fault {
  const rescuer: NodeName = name === 'fra-1' ? 'fra-2' : 'fra-1'
  let adoption: Promise<readonly unknown[]> = Promise.resolve([])
  let heal: () => void = () => undefined
  return {
    ...unnoticed,
    kind: 'adopt-copy',
    text: `cut ${name} off from ${cut}, and adopt a copy of its disk on ${rescuer}`,
    missing: [name],
    stopsServing: true,
    cutsNetwork: true,
    async begin(cluster) {
      const others: readonly HostName[] = cut === 'control' ? ['balancer'] : ['balancer', 'storage']
      const heals = others.map((other) => cluster.network.cut(cluster.host(name), cluster.host(other)))
      heal = () => {
        for (const each of heals) each()
      }
      const copy = cluster.newPath(`copy-of-${name}`)
      await storeRecords(cluster, name)
      // A snapshot of a volume is of one moment.
      cluster.program(name).pause()
      cpSync(cluster.path(name), copy, { recursive: true })
      cluster.program(name).resume()
      // These are only on its own disk, some of them in segments that the copy has as well.
      await storeRecords(cluster, name)
      adoption = once(cluster.program(rescuer).runBeside(['node', '--adopt', copy]), 'close')
      return () => replace(cluster, name, rescuer)
    },
    async check(cluster) {
      const [code, signal] = await within(adoptionMsMax, adoption)
      const problems = code === 0 ? [] : [`the adoption ended with ${signal ?? `code ${code}`}`]
      await storeRecords(cluster, name).catch((error) => problems.push(errorMessage(error)))
      heal()
      return [...problems, ...(await findWrongsOfFenced(cluster, name, 'another machine adopted the log of this node'))]
    },
  }
}

/**
 * Does what docs/fencing.md says: keeps the disk, sends what the adopting machine did not have, and confirms the losses, which are mended by that.
 * Then another node takes the place.
 */
async function replace(cluster: Cluster, name: NodeName, rescuer: NodeName): Promise<void> {
  const nodeId = cluster.nodeId(name)
  const disk = cluster.newPath(`own-disk-of-${name}`)
  renameSync(cluster.path(name), disk)
  await until('control has recorded what only markers have', () => hasAllCommits(cluster), recoveryMsMax)
  const losses = await cluster.lossesOf(nodeId)
  for (const [id, held] of readHeld(disk)) {
    const sent = await sendRest(cluster, { id, nodeId, rescuer, held })
    const told = losses
      .filter(({ endpoint_id }) => endpoint_id === id)
      .reduce((sum, { records }) => sum + (records ?? Infinity), 0)
    if (told < sent) throw new Error(`${sent} records of endpoint ${id} were only on the disk, and the ledger has ${told}`)
  }
  await cluster.confirmLosses(nodeId)
  await cluster.removeNode(nodeId)
  await cluster.join(name)
  await cluster.untilReady(name)
}

async function hasAllCommits({ endpoints, management }: Cluster): Promise<boolean> {
  const lists = await Promise.all(endpoints.map(({ id }) => management.ok('GET', `/v1/endpoints/${id}/commits?limit=1`)))
  return lists.every(({ may_lack_commits_since }) => may_lack_commits_since === null)
}

type Rest = { readonly id: string; readonly nodeId: string; readonly rescuer: NodeName; readonly held: Held }

/**
 * Sends the records of each segment that its commit does not count: those that were acknowledged after the copy was made. Returns how many.
 */
async function sendRest(cluster: Cluster, { id, nodeId, rescuer, held }: Rest): Promise<number> {
  const endpoint = cluster.endpoints.find((each) => each.id === id)
  const commits = (await cluster.management.commits(id)).filter(({ node_id }) => node_id === nodeId)
  const lines: string[] = []
  for (const path of held.segments) {
    const output = await cluster.program(rescuer).run(['segments', 'cat', path])
    const printed = output.split('\n').filter((line) => line !== '')
    const records = printed.map((line): { readonly seq: number; readonly payload: string } => JSON.parse(line))
    const delivered = commits.find(({ seq }) => seq === records[0]?.seq)?.records ?? 0
    lines.push(...records.slice(delivered).map(({ payload }) => payload))
    cluster.note(`${basename(dirname(path))}/${basename(path)}: ${records.length} records, ${delivered} of them committed`)
  }
  const { apiKey } = cluster.installation
  for (let at = 0; at < lines.length; at += linesMax) {
    const body = `${lines.slice(at, at + linesMax).join('\n')}\n`
    const response = await postTo(cluster.host(rescuer), { host: endpoint?.ingestHost ?? '', apiKey, body })
    if (response.status !== 202) throw new Error(`${rescuer} did not take the rest: ${response.status} ${response.body}`)
  }
  return lines.length
}
