/** Compares the views that a plan changes with what is published, over stored records. */
import type { Client } from '#client/client.ts'
import { ApiError } from '#client/errors.ts'
import type { Schemas } from '#client/generated/schema.ts'
import { describeComparison } from './describe-comparison.ts'
import { printable } from './kinds/problems.ts'
import { bodyOfDefinition } from './kinds/views.ts'
import type { Plan } from './plan.ts'

/** Either a comparison, or why there is none. */
export type ViewOnData = {
  readonly view: string
  readonly comparison: Schemas['ViewComparison'] | null
  readonly problem: string | null
}

/** One after the other: the server reads files for each. */
export async function compareViews(client: Client, { account, changes, setup }: Plan): Promise<readonly ViewOnData[]> {
  const compared: ViewOnData[] = []
  for (const { kind, action, name, fields } of changes) {
    if (kind !== 'views' || action === 'delete' || !fields.some(({ path }) => path === 'definition')) continue
    const published = account.views.get(name)?.find(({ status }) => status === 'published')
    const declared = setup.views.find(({ value }) => value.name === name)
    if (published === undefined || declared === undefined) {
      compared.push({ view: name, comparison: null, problem: 'no version is published that it could be compared with' })
      continue
    }
    try {
      const comparison = await client.compareView(published.id, { definition: bodyOfDefinition(declared.value.definition) })
      compared.push({ view: name, comparison, problem: null })
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      compared.push({ view: name, comparison: null, problem: error.message })
    }
  }
  return compared
}

export function describeViewsOnData(views: readonly ViewOnData[]): string {
  if (views.length === 0) return 'On stored records: the plan changes no definition of a view.\n'
  const parts = views.map(({ view, comparison, problem }) =>
    comparison === null ? `view ${printable(view)}: ${printable(problem ?? '')}\n` : describeComparison(comparison),
  )
  const indented = parts.map((part) => part.replace(/^(?=.)/gm, '  '))
  return `On stored records:\n\n${indented.join('\n')}`
}
