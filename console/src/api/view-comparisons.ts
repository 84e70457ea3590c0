import { client, ok, type Schemas } from './client.ts'

export type ViewComparison = Schemas['ViewComparison']
export type ComparedSide = Schemas['ComparedSide']
export type ComparedColumn = Schemas['ComparedColumn']
export type OutcomeChange = Schemas['OutcomeChange']
export type RowChange = Schemas['RowChange']
export type Compared = Schemas['CompareView']

/** Runs a definition or a version over stored records, beside a published version. */
export function compareView(view_id: string, body: Compared): Promise<ViewComparison> {
  return ok(client.POST('/v1/views/{id}/compare', { params: { path: { id: view_id } }, body }))
}
