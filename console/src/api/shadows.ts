import { client, ok } from './client.ts'

export function startShadow(endpoint_id: string, view_id: string) {
  return ok(client.POST('/v1/endpoints/{endpoint_id}/shadows', { params: { path: { endpoint_id } }, body: { view_id } }))
}

export async function endShadow(endpoint_id: string, shadow_id: string): Promise<void> {
  await ok(client.DELETE('/v1/endpoints/{endpoint_id}/shadows/{shadow_id}', { params: { path: { endpoint_id, shadow_id } } }))
}
