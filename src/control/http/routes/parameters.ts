import { z } from 'zod'
import { Id } from '#model/id.ts'

export const ById = z.object({ id: Id })
export const ByEndpoint = z.object({ endpoint_id: Id })
export const ByBinding = z.object({ endpoint_id: Id, binding_id: Id })

/** A response without a body. */
export const Empty = z.undefined().describe('success, without a body')
