import { client, ok } from './client.ts'
import type { Definition, View, ViewDetail } from './views.ts'

/** Returns the latest draft of a view, or a new one that begins as a copy of this version. */
export async function openDraft(view_id: string): Promise<View> {
  const path = { id: view_id }
  const view: ViewDetail = await ok(client.GET('/v1/views/{id}', { params: { path } }))
  const draft = view.versions.find(({ status }) => status === 'draft')
  if (draft !== undefined) return ok(client.GET('/v1/views/{id}', { params: { path: { id: draft.id } } }))
  return ok(client.POST('/v1/views/{id}/versions', { params: { path }, body: { copy_from_version: view.version } }))
}

export type Column = Definition['columns'][number]

/** Adds a column to the latest draft of a view. Without one, a draft begins as a copy of the newest version: what it changed is kept. */
export async function addColumnToDraft(view_id: string, column: Column): Promise<View> {
  const { versions } = await ok(client.GET('/v1/views/{id}', { params: { path: { id: view_id } } }))
  const published = versions.filter(({ status }) => status === 'published').toSorted((a, b) => b.version - a.version)
  const { id, definition } = await openDraft(published[0]?.id ?? view_id)
  const body = { definition: { ...definition, columns: [...definition.columns, column] } }
  return ok(client.PATCH('/v1/views/{id}', { params: { path: { id } }, body }))
}
