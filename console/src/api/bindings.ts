import { queryOptions } from '@tanstack/react-query'
import { client, ok, type Schemas } from './client.ts'
import { slowMs, whileThere } from './intervals.ts'

export type Binding = Schemas['Binding']

/** Bindings of views to an endpoint, current and past. */
export const bindingsQuery = (account: string, endpoint_id: string) =>
  queryOptions({
    queryKey: [account, 'bindings', endpoint_id],
    queryFn: () => ok(client.GET('/v1/endpoints/{endpoint_id}/views', { params: { path: { endpoint_id } } })),
    refetchInterval: whileThere(slowMs),
  })

export type Attachment = {
  readonly view_id: string
  readonly is_required: boolean
  /** Only segments sealed from then on; null for all from now on. */
  readonly canary_start_ts: string | null
  /** When it is detached by itself: by the rule of the server, or never. */
  readonly canary_rule: Schemas['SetCanaryRule'] | null
}

export function attachView(endpoint_id: string, attachment: Attachment) {
  return ok(client.POST('/v1/endpoints/{endpoint_id}/views', { params: { path: { endpoint_id } }, body: attachment }))
}

export async function detachView(endpoint_id: string, binding_id: string): Promise<void> {
  await ok(client.DELETE('/v1/endpoints/{endpoint_id}/views/{binding_id}', { params: { path: { endpoint_id, binding_id } } }))
}
