import type { ViewWithUsage } from '../../api/views.ts'

/** All versions of a view. */
export type NamedView = {
  readonly name: string
  /** The latest published version; the latest of any status if none is published. */
  readonly current: ViewWithUsage
  /** The latest draft beside it. */
  readonly draft: ViewWithUsage | undefined
  readonly versions: readonly ViewWithUsage[]
  /** Attachments of all versions. */
  readonly attachments: number
}

/** Groups versions by the name of their view, in the order of the names. Versions are newest first. */
export function groupViews(versions: readonly ViewWithUsage[]): readonly NamedView[] {
  return [...Map.groupBy(versions, ({ name }) => name)]
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .flatMap(([name, unordered]) => {
      const of = unordered.toSorted((a, b) => b.version - a.version)
      const current = of.find(({ status }) => status === 'published') ?? of[0]
      if (current === undefined) return []
      const draft = of.find((each) => each.status === 'draft' && each !== current)
      const attachments = of.reduce((sum, { usage_count }) => sum + usage_count, 0)
      return [{ name, current, draft, versions: of, attachments }]
    })
}

/** Whether any word that people search by contains the text. */
export function matchesView({ name, current: { description, tags } }: NamedView, text: string): boolean {
  const words = [name, description, ...tags].join('\n').toLowerCase()
  return words.includes(text.trim().toLowerCase())
}
