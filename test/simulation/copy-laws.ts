/** Laws of the second copy: a record has it from when it is acknowledged until its commit, and no longer. */
import { Buffer } from 'node:buffer'
import { keysLogName } from '#copies/key-copies.ts'
import { digestsOf } from '#ingest/idempotency/request-digests.ts'
import type { Buckets } from './bucket.ts'
import type { Sent, State } from './laws.ts'

/** An object of pieces, or one that closes an incarnation. */
const objectName = /^([0-9a-f-]{36})\/([a-z0-9]{10})\/(\d{20})$/
/** State of a node: which of its objects are needed. */
const stateName = /^([0-9a-f-]{36})\/writer\/\d{20}$/
const kindAt = 10
const noBytes = Buffer.alloc(0)

type Held = {
  readonly nodeId: string
  readonly incarnation: string
  readonly number: number
  readonly ids: ReadonlySet<string>
  /** Set for one of idempotency keys. */
  readonly keys: Buffer | undefined
}

/** By body. */
const known = new WeakMap<Buffer, ReadonlySet<string>>()

function heldIn({ objects }: Buckets): readonly Held[] {
  return [...objects].flatMap(([key, body]) => {
    const [, nodeId, incarnation = '', number] = objectName.exec(key) ?? []
    if (nodeId === undefined || body[kindAt] !== 0) return []
    const keys = body.includes(keysLogName) ? body : undefined
    return [{ nodeId, incarnation, number: Number(number), ids: idsOf(body), keys }]
  })
}

/** Below which numbers the node needs no objects, by incarnation, as it says. */
function boundariesIn(copyStore: Buckets): ReadonlyMap<string, Readonly<Record<string, number>>> {
  const newest = new Map<string, string>()
  for (const [key, body] of [...copyStore.objects].toSorted(([one], [other]) => (one < other ? -1 : 1))) {
    const [, nodeId] = stateName.exec(key) ?? []
    if (nodeId !== undefined) newest.set(nodeId, body.toString())
  }
  return new Map([...newest].map(([nodeId, state]) => [nodeId, JSON.parse(state).below]))
}

/** Whether the node has removed copies of what is delivered. */
export function hasRemovedCopies(copyStore: Buckets, nodeId: string): boolean {
  return Object.values(boundariesIn(copyStore).get(nodeId) ?? {}).some((from) => from > 0)
}

/** Objects that a takeover would find: from the number that the node says, up to the first that is missing. */
function restorableIn(copyStore: Buckets): readonly Held[] {
  const held = new Map(heldIn(copyStore).map((each) => [nameOf(each), each]))
  return [...boundariesIn(copyStore)].flatMap(([nodeId, below]) =>
    Object.entries(below).flatMap(([incarnation, from]) => {
      const found: Held[] = []
      for (let number = from; ; number += 1) {
        const object = held.get(nameOf({ nodeId, incarnation, number }))
        if (object === undefined) return found
        found.push(object)
      }
    }),
  )
}

function nameOf({ nodeId, incarnation, number }: Pick<Held, 'nodeId' | 'incarnation' | 'number'>): string {
  return `${nodeId}/${incarnation}/${number}`
}

function idsOf(body: Buffer): ReadonlySet<string> {
  const found = known.get(body)
  if (found !== undefined) return found
  const ids = new Set([...body.toString('latin1').matchAll(/"id":"([^"]+)"/g)].map(([, id = '']) => id))
  known.set(body, ids)
  return ids
}

/** Acknowledged records that are neither copied nor in a row. `sent` is what endpoints with two copies were sent. */
export function findUncopied(copyStore: Buckets, sent: readonly Sent[], isInRow: (line: string) => boolean): readonly string[] {
  const held = restorableIn(copyStore)
  return sent.flatMap(({ ids, lines, isAcknowledged }) =>
    !isAcknowledged
      ? []
      : ids.flatMap((id, at) =>
          isInRow(lines[at] ?? '') || held.some((each) => each.ids.has(id))
            ? []
            : [`record ${id} was acknowledged, and has no copy and no commit`],
        ),
  )
}

/** Acknowledged requests with a key that a takeover would not find. */
export function findForgottenKeys(copyStore: Buckets, sent: readonly Sent[]): readonly string[] {
  const held = restorableIn(copyStore)
  const isKept = (endpoint: string, key: string) => {
    const { id } = digestsOf(endpoint, key, { envelope: noBytes, payload: [] })
    return held.some(({ keys }) => keys?.includes(id))
  }
  return sent.flatMap(({ endpoint, ids: [first = ''], key, isAcknowledged }) =>
    !isAcknowledged || key === undefined || held.some(({ ids }) => ids.has(first))
      ? []
      : isKept(endpoint, key)
        ? []
        : [`the key ${key} was acknowledged, and is not in the copy store`],
  )
}

/** Copies that stay although all is delivered. Machines that lost their place or adopt a disk remove none, and segments in quarantine keep theirs. */
export function findLeftCopies({ copyStore, control, disks: [own, adopted] }: State): readonly string[] {
  if (copyStore === undefined || adopted !== undefined || own.rot.taken.size > 0) return []
  const working = [...control.ids].flatMap(([machine, id]) => (control.refuses(machine) ? [] : [id]))
  const left = heldIn(copyStore).filter(({ nodeId, keys }) => keys === undefined && working.includes(nodeId))
  return left.length === 0 ? [] : [`${left.length} objects of copies`]
}
