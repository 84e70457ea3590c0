/**
 * Selects the views that apply to a segment.
 *
 * Law: only the time at which the segment was sealed decides, so every conversion of it, at any time, gets the same views.
 */
import type { BoundView } from '#model/snapshot.ts'

/**
 * Returns the views whose binding was active when the segment was sealed, in the order given. A detached one is optional, so that detaching
 * releases a segment that a required view holds.
 */
export function viewsAt(views: readonly BoundView[], sealedAt: string): readonly BoundView[] {
  const active = new Map<string, BoundView>()
  // Two bindings of one view overlap only if a clock went back. The later one counts, and the view has one output.
  for (const view of views) if (wasActive(view, sealedAt)) active.set(view.view_id, view)
  return [...active.values()].map((view) => (view.deactivated_at === null ? view : { ...view, is_required: false }))
}

/** Timestamps of this form sort like the times that they name. */
function wasActive({ activated_at, deactivated_at, canary_start_ts }: BoundView, sealedAt: string): boolean {
  if (activated_at > sealedAt || (deactivated_at !== null && deactivated_at <= sealedAt)) return false
  return canary_start_ts === null || canary_start_ts <= sealedAt
}
