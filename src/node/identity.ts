/**
 * The id of this node. Names of objects, markers and commits are made of it, together with the log of the node.
 *
 * Owns: `node/id`, and the copy of the id in the WAL directory. Does not own: the registration with control.
 * Law: the id and the log belong together. A log is never used under another id than the one that its segments were written under: its
 * delivered segments would not be recognised, and would be committed a second time. So a log that was used never gets an id silently.
 */
import { basename, dirname } from 'node:path'
import { lockExclusively } from '#lib/exclusive.ts'
import { type Files, writeDurably } from '#lib/files.ts'
import { randomUuid } from '#lib/random.ts'
import { readOrCreate, readTrimmed } from '#lib/read-or-create.ts'
import type { System } from '#lib/system.ts'
import type { Logger } from '#lib/telemetry.ts'
import { UserError } from '#lib/user-error.ts'
import { isUuid } from '#lib/uuid.ts'

export type IdentityPaths = {
  /** The id of the node. */
  readonly nodeId: string
  /** The id of the node that the log belongs to, beside the log. */
  readonly walNodeId: string
  /** There once the node has joined. */
  readonly nodeCredential: string
}

export type AdoptPaths = IdentityPaths & { readonly ingestLock: string; readonly deliveryLock: string }

/** Returns the id of this node. The first process to call this creates it. Throws UserError if the log belongs to another node. */
export async function readOrCreateNodeId(
  paths: IdentityPaths,
  { files, random }: Pick<System, 'files' | 'random'>,
): Promise<string> {
  const { nodeId, walNodeId } = paths
  const log = dirname(walNodeId)
  // Read before the ids: another process of a new node creates them before it joins.
  const hasJoined = (await readTrimmed(files, paths.nodeCredential)) !== undefined
  const isUsed = await isLogUsed(files, paths)
  // Read after that, because a log of this node has its id before anything else, and in this order: another process that creates both
  // begins with the id of the node.
  const owner = await readId(files, walNodeId, 'start once with --adopt to take the log over under the id of this node')
  const own = await readId(files, nodeId, adoptingInstead(paths, owner, isUsed))
  if (own === undefined && owner !== undefined) {
    throw new UserError(
      `this node has lost its id: ${nodeId} is missing, and the log in ${log} belongs to node ${owner}. Start once with --adopt to continue as that node, or move the log away to start as a new one`,
    )
  }
  if (hasJoined && own !== undefined && owner === undefined && !isUsed) throw lostLog(paths, own)
  if (isUsed && owner === undefined) {
    const lost = own === undefined ? `${nodeId} and ${walNodeId} are missing` : `${walNodeId} is missing`
    const remedy = adoptingInstead(paths, own, isUsed)
    const capitalized = remedy.charAt(0).toUpperCase() + remedy.slice(1)
    throw new UserError(
      `the log in ${log} was written before, and it is not known by which node: ${lost}. ${capitalized}, or move the log away to start without it`,
    )
  }
  const id = await readOrCreate(files, nodeId, () => randomUuid(random))
  // This reads again what was checked before: a disk that misreads it once must not give the node another id.
  if (!isUuid(id) || id !== (own ?? id)) throw new UserError(`${nodeId} was read as two ids: check the disk, then start again`)
  // Created before the log has a segment, so a log of this node always has its id.
  const ownerNow = await readOrCreate(files, walNodeId, () => id)
  // Also if another process has created both meanwhile, and one of them is damaged since.
  if (ownerNow !== id)
    throw new UserError(
      `the log in ${log} belongs to node ${ownerNow}, but this node is ${id} (${nodeId}). Start once with --adopt to continue as node ${ownerNow}, or move the log back to that node`,
    )
  return id.toLowerCase()
}

/**
 * Makes this node the one that its log belongs to. A log without a readable id gets the id of this node, or a new one if that is lost as
 * well. Does nothing if the two agree. Throws LockHeldError while ingest or delivery run.
 */
export async function adoptWal(
  paths: AdoptPaths,
  { files, random }: Pick<System, 'files' | 'random'>,
  logger: Logger,
): Promise<void> {
  const { nodeId, walNodeId, ingestLock, deliveryLock } = paths
  using _ingest = lockExclusively(ingestLock)
  using _delivery = lockExclusively(deliveryLock)
  const [own, owner] = [await readTrimmed(files, nodeId), await readTrimmed(files, walNodeId)]
  if (isUuid(owner)) {
    if (own === owner) return
    await writeDurably(files, nodeId, Buffer.from(`${owner}\n`))
    logger.warn({ before: own ?? null, now: owner }, 'log adopted: the node continues under the id that the log belongs to')
    return
  }
  if (owner === undefined && !(await isLogUsed(files, paths))) return
  const isNew = !isUuid(own)
  const id = isNew ? randomUuid(random) : own
  if (isNew) await writeDurably(files, nodeId, Buffer.from(`${id}\n`))
  await writeDurably(files, walNodeId, Buffer.from(`${id}\n`))
  const taken = isNew
    ? 'log adopted: both ids were lost, and it continues as a new node; segments of it that were committed before are committed again'
    : 'log adopted: its id could not be read, and it continues under the id of this node'
  logger.warn({ now: id }, taken)
}

/** Records in the log may be acknowledged and not delivered. With an empty one control would forget it, and the node would use its seqs again. */
function lostLog({ nodeId, walNodeId }: IdentityPaths, own: string): UserError {
  const [node, log] = [dirname(nodeId), dirname(walNodeId)]
  return new UserError(
    `the log of node ${own} is gone: ${log} is empty. Mount or move it back. If it is lost, or not to be continued, move ${node} away to start as a new node, and then remove this one: inlet nodes remove ${own}`,
  )
}

/** Whether the log's directory has more than its id, which is written first: a log without its id then has lost it. */
async function isLogUsed(files: Files, { walNodeId }: IdentityPaths): Promise<boolean> {
  const entries = await files.list(dirname(walNodeId))
  return entries.some(({ name }) => name !== basename(walNodeId) && !name.endsWith('.tmp') && !isOfFileSystem(name))
}

/** Not written by Inlet: the root of a file system may have these. */
function isOfFileSystem(name: string): boolean {
  return name.startsWith('.') || name === 'lost+found'
}

/** Says what to do about an id that is lost. `known` is the other one of the two. */
function adoptingInstead({ nodeId }: IdentityPaths, known: string | undefined, isUsed: boolean): string {
  if (known !== undefined) return `start once with --adopt to continue as node ${known}`
  if (!isUsed) return 'delete it to start as a new node'
  return `write the id of that node into ${nodeId} (GET /v1/nodes lists it) and start once with --adopt; or start with --adopt alone to take the log over as a new node, which commits again what that node had committed`
}

/** Throws UserError if there is something else in the file. */
async function readId(files: Files, path: string, remedy: string): Promise<string | undefined> {
  const text = await readTrimmed(files, path)
  if (text === undefined || isUuid(text)) return text
  throw new UserError(`${path} ${text === '' ? 'is empty' : 'is not the id of a node'}: restore it, or ${remedy}`)
}
