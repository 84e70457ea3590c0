/** `inlet nodes`: shows, names and removes nodes, directly in the database, so that it works while control is down. */
import { inventoryService } from '#control/fleet/node-inventory.ts'
import { countNoun } from '#lib/count-noun.ts'
import { UserError } from '#lib/user-error.ts'
import { parseFields } from '#model/field-errors.ts'
import { nodeLimits } from '#model/limits.ts'
import { ChangeNode, type NodeProcess, type NodeRemoval, type SegmentTotals } from '#model/node.ts'
import { type CliContext, UsageError } from '../terminal/context.ts'
import { type JsonFlags, printJson, printResult } from '../terminal/print-json.ts'
import { toTable } from '../terminal/table.ts'
import { audited } from './audited.ts'
import { listAll, openToChange, openToRead, servicesBeside } from './store.ts'

/** Flags of `remove` and `release`. */
export type RemoveFlags = JsonFlags & { readonly yes: boolean }

export async function listAllNodes(this: CliContext, { json }: JsonFlags): Promise<void> {
  await using store = await openToRead(this)
  const inventory = inventoryService(servicesBeside(this, store))
  const nodes = await listAll((page) => inventory.listNodes(page))
  if (json) return printJson(this, nodes)
  const now = this.clock.now()
  const rows = nodes.map(({ id, name, region, version, ingest_address, ipv4, ipv6, credential, ingest, delivery, ...of }) => [
    ...[
      id,
      name ?? '-',
      region,
      version ?? 'unknown',
      ingest_address,
      listSome([...ipv4, ...ipv6]),
      describeProcess(ingest, now),
      describeProcess(delivery, now),
      credential,
    ],
    ...[String(countSegments(of.segments)), String(of.segments.bytes), of.disk === null ? 'unknown' : String(of.disk.free_bytes)],
  ])
  const heads = [
    'ID',
    'NAME',
    'REGION',
    'VERSION',
    'ADDRESS',
    'DNS',
    'INGEST',
    'DELIVERY',
    'CREDENTIAL',
    'SEGMENTS',
    'BYTES',
    'FREE',
  ]
  this.process.stdout.write(nodes.length === 0 ? 'There are no nodes.\n' : toTable([heads, ...rows]))
}

export type RenameFlags = JsonFlags & { readonly none: boolean }

export async function renameOneNode(
  this: CliContext,
  { none, ...flags }: RenameFlags,
  idOrName: string,
  name?: string,
): Promise<void> {
  if (none === (name !== undefined)) throw new UsageError('give the new name of the node, or --none to take its name away')
  const { value, errors } = parseFields(ChangeNode, { name: name ?? null })
  if (errors !== undefined)
    throw new UsageError(errors.map(({ message }) => `NAME: ${message.replace(' or null', ', or --none')}`).join('\n'))
  await using store = await openToChange(this)
  const inventory = inventoryService(servicesBeside(this, store))
  const id = await inventory.findId(idOrName)
  const what = { operation: 'changeNode', account_id: null, resource_id: id }
  const node = await audited(store, this.clock, what, () => inventory.change(id, value))
  printResult(
    this,
    flags,
    node,
    node.name === null ? `The node ${id} has no name now.\n` : `The node ${id} is now named "${node.name}".\n`,
  )
}

/** Without `--yes` it only says what would be abandoned, and the exit code is 1. */
export async function removeOneNode(this: CliContext, { yes, json }: RemoveFlags, idOrName: string): Promise<void> {
  await using store = await (yes ? openToChange : openToRead)(this)
  const inventory = inventoryService(servicesBeside(this, store))
  const id = await inventory.findId(idOrName)
  const { removal, obstacle } = await inventory.planRemoval(id)
  if (!json) this.process.stdout.write(describeRemoval(removal))
  if (!yes) {
    if (json) printJson(this, { ...removal, removed: false })
    const why = obstacle === undefined ? '' : `: ${obstacle}`
    throw new UserError(`nothing was removed${why}; to remove the node anyway, repeat the command with --yes`)
  }
  const what = { operation: 'removeNode', account_id: null, resource_id: id }
  const { losses } = await audited(store, this.clock, what, () => inventory.remove(id, true))
  if (json) return printJson(this, { ...removal, losses, removed: true })
  this.process.stdout.write(
    `The node ${id} is removed. Drains no longer wait for it, and control refuses its credential.\n${describeLosses(losses)}`,
  )
}

export async function revokeNode(this: CliContext, flags: JsonFlags, idOrName: string): Promise<void> {
  await using store = await openToChange(this)
  const inventory = inventoryService(servicesBeside(this, store))
  const id = await inventory.findId(idOrName)
  const what = { operation: 'revokeNodeCredential', account_id: null, resource_id: id }
  await audited(store, this.clock, what, () => inventory.revokeCredential(id))
  printResult(this, flags, { id, revoked: true }, `The credential of the node ${id} is refused from now on.\n`)
}

/** The operation is that of the API: a released id has no credential. A node that runs is released only with `--yes`. */
export async function releaseNode(this: CliContext, { yes, ...flags }: RemoveFlags, idOrName: string): Promise<void> {
  await using store = await openToChange(this)
  const inventory = inventoryService(servicesBeside(this, store))
  const id = await inventory.findId(idOrName)
  const obstacle = yes ? undefined : await inventory.findReleaseObstacle(id)
  if (obstacle !== undefined)
    throw new UserError(`nothing was released: ${obstacle}; to release the id anyway, repeat the command with --yes`)
  const what = { operation: 'revokeNodeCredential', account_id: null, resource_id: id }
  const losses = await audited(store, this.clock, what, () => inventory.release(id, yes))
  printResult(
    this,
    flags,
    { id, released: true, losses },
    `The id ${id} is released: its credential is refused, and the next node that joins under the id gets it.\n${losses === 0 ? nothingWaited : describeLosses(losses)}`,
  )
}

const nothingWaited =
  'No loss is recorded: the node had last reported nothing that waited. What it acknowledged later is lost with its disk.\n'

function describeLosses(losses: number): string {
  if (losses === 0) return ''
  if (losses === 1)
    return '1 loss is recorded: the account of the endpoint finds it in inlet losses list, and confirms it (all: inlet nodes losses).\nIt says as of when it is: what was acknowledged later is lost as well.\n'
  return `${losses} losses are recorded, one for each endpoint: their accounts find them in inlet losses list, and confirm them (all: inlet nodes losses).\nThey say as of when they are: what was acknowledged later is lost as well.\n`
}

function describeRemoval({ segments, endpoints, logs, reported_at, note }: NodeRemoval): string {
  if (endpoints === 0) return `The node reported no segment. Mind that ${note}.\n`
  const rows = logs.map(({ endpoint_id, endpoint_name, account_id, owner, bytes, records, first_segment_seq, ...counts }) => [
    ...[endpoint_id, endpoint_name ?? '-', account_id ?? '-', owner],
    ...[String(countSegments(counts)), String(first_segment_seq ?? '-'), String(records ?? '-'), String(bytes)],
  ])
  const count = countNoun(countSegments(segments), 'segment')
  const more = endpoints > logs.length ? `and ${endpoints - logs.length} more endpoints\n` : ''
  return (
    `${toTable([['ENDPOINT', 'NAME', 'ACCOUNT', 'OWNER', 'SEGMENTS', 'FROM', 'RECORDS', 'BYTES'], ...rows])}${more}\n` +
    `Abandoned with the node, as it reported at ${reported_at}: ${count} (${segments.bytes} bytes).\n` +
    `What is abandoned stays on its disk. Mind that ${note}.\n`
  )
}

function countSegments(of: Omit<SegmentTotals, 'bytes'>): number {
  return of.open_segments + of.sealed_segments + of.parked_segments + of.quarantined_segments
}

/** Returns for example `192.0.2.1 and 3 more`. */
function listSome([first = '-', ...others]: readonly string[]): string {
  return others.length === 0 ? first : `${first} and ${others.length} more`
}

/** Returns for example `healthy, 2 s ago`. One that keeps its configuration refuses that of this database. What a process said last is no longer true once it is silent. */
function describeProcess(process: NodeProcess | null, now: number): string {
  if (process === null) return 'never seen'
  const seconds = Math.max(0, Math.round((now - Date.parse(process.last_seen_at)) / 1000))
  if (now - Date.parse(process.last_seen_at) > nodeLimits.healthySeconds * 1000) return `silent for ${seconds} s`
  const keeps = process.kept_position === null ? '' : `, keeps epoch ${process.kept_position.epoch}`
  return `${process.healthy ? 'healthy' : 'not healthy'}${keeps}, ${seconds} s ago`
}
