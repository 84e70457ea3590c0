import type { Client } from '#client/client.ts'
import { countNoun } from '#lib/count-noun.ts'
import { namedId } from '#lib/named-id.ts'
import { UserError } from '#lib/user-error.ts'

/** Returns for example `up to 12 records (1 segment) of shop on node fra-1 (4f8c…)`. Throws a UserError if there is no such loss. */
export async function describeLoss(client: Client, id: string): Promise<string> {
  for await (const loss of client.listLosses()) {
    if (loss.id !== id) continue
    const { records, segments, endpoint_name, node_id, node_name } = loss
    const count = records === null ? 'records that the node had not counted' : `up to ${countNoun(records, 'record')}`
    return `${count} (${countNoun(segments, 'segment')}) of ${endpoint_name} on node ${namedId(node_id, node_name)}`
  }
  throw new UserError(`there is no loss ${id}: inlet losses list shows the ids`)
}
