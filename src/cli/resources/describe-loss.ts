import type { Client } from '#client/client.ts'
import { namedId } from '#lib/named-id.ts'
import { UserError } from '#lib/user-error.ts'
import { describeLost } from '#model/lost-records.ts'

/** Returns for example `up to 12 acknowledged records of shop on node fra-1 (4f8c…), as of …, and what was acknowledged later`. Throws a UserError if there is no such loss. */
export async function describeLoss(client: Client, id: string): Promise<string> {
  for await (const loss of client.listLosses()) {
    if (loss.id !== id) continue
    return describeLost(loss, ` of ${loss.endpoint_name} on node ${namedId(loss.node_id, loss.node_name)}`)
  }
  throw new UserError(`there is no loss ${id}: inlet losses list shows the ids`)
}
