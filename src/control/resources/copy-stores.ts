import { AppError } from '#errors.ts'
import { namedId } from '#lib/named-id.ts'
import { copiesDefault } from '#model/endpoint.ts'
import { hasRecentHeartbeat, hasValidCredential } from '#naming/serving-nodes.ts'
import { listNodes } from '#store/nodes/nodes.ts'
import type { Db } from '#store/store.ts'

/** Throws validation_error if a node of the region has no copy store and the endpoint wants copies. */
export async function requireCopyStores(db: Db, region: string, copies: number | null | undefined, nowMs: number): Promise<void> {
  if ((copies ?? copiesDefault) === copiesDefault) return
  const nodes = await listNodes(db, [region])
  const lacking = nodes.filter(
    (node) => hasValidCredential(node) && hasRecentHeartbeat(node.ingest, nowMs) && node.ingest?.has_copy_store !== true,
  )
  const [first] = lacking
  if (first === undefined) return
  const more = lacking.length === 1 ? '' : `, and ${lacking.length - 1} more of the region`
  const message = `node ${namedId(first.id, first.name)}${more} has no copy store: set INLET_COPY_URL there, and start it again`
  throw new AppError('validation_error', message, { errors: [{ path: 'copies', message }] })
}
