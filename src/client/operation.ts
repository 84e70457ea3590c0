import type { TokenScope } from './access.ts'
import type { Paging } from './listing.ts'

/** How an operation of the API is called. */
export type Operation = {
  readonly method: string
  readonly path: string
  readonly scope: TokenScope | 'operator' | 'public'
  /** Argument of its method that follows the ids of the path. */
  readonly input: 'body' | 'query' | 'none'
  /** Whether a repetition does no harm. */
  readonly isRepeatable: boolean
  readonly paging?: Paging
}
