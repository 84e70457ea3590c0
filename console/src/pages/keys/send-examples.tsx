import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Link } from '@tanstack/react-router'
import { useState } from 'react'
import { type Endpoint, endpointsQuery } from '../../api/endpoints.ts'
import { ingestTargetOf } from '../../api/ingest-address.ts'
import { Callout } from '../../design/callout.tsx'
import { CodeBlock } from '../../design/code-block.tsx'
import { SelectField } from '../../design/field.tsx'
import { Sheet } from '../../design/layout.tsx'
import { Skeleton } from '../../design/skeleton.tsx'
import { TabBar, tabClass } from '../../design/tabs.tsx'
import { Failure } from '../../shell/failure.tsx'
import { useAccount } from '../../shell/session.tsx'
import { examplesFor, pageExamplesFor } from './examples.ts'
import style from './keys.module.css'

type SendExamplesProps = {
  readonly apiKey: string
  readonly endpointIds: readonly string[] | null
  /** Whether web pages hold the key. */
  readonly isPublic: boolean
}

/** Programs that send an event to one of the endpoints that the key is for. */
export function SendExamples({ apiKey, endpointIds, isPublic }: SendExamplesProps) {
  const endpoints = useQuery(endpointsQuery(useAccount()))
  const [chosen, setChosen] = useState<string>()
  if (endpoints.isError) return <Failure error={endpoints.error} onRetry={() => void endpoints.refetch()} />
  if (endpoints.data === undefined) return <Skeleton height="chart" />
  const own = endpoints.data.items.filter(({ id, status }) => status !== 'draining' && (endpointIds?.includes(id) ?? true))
  const endpoint = own.find(({ id }) => id === chosen) ?? own[0]
  if (endpoint === undefined) {
    return (
      <Callout title="No endpoint yet">
        <p>Create an endpoint, then send to its address with this key.</p>
      </Callout>
    )
  }
  return (
    <>
      {own.length > 1 && (
        <Sheet>
          <SelectField
            label="Send to"
            value={endpoint.id}
            choices={own.map(({ id, name }) => ({ value: id, label: name }))}
            onChange={setChosen}
          />
        </Sheet>
      )}
      <Examples apiKey={apiKey} endpoint={endpoint} isPublic={isPublic} />
    </>
  )
}

const route = getRouteApi('/signed-in/in/$account/keys/new')

type ExamplesProps = { readonly apiKey: string; readonly endpoint: Endpoint; readonly isPublic: boolean }

function Examples({ apiKey, endpoint, isPublic }: ExamplesProps) {
  const account = useAccount()
  const search = route.useSearch()
  const target = { ...ingestTargetOf(endpoint), key: apiKey }
  const examples = isPublic ? pageExamplesFor(target) : examplesFor(target)
  const shown = examples.find(({ id }) => id === search.example) ?? examples[0]
  return (
    <>
      <TabBar label="Examples">
        {examples.map(({ id, label }) => (
          <Link
            key={id}
            to="/in/$account/keys/new"
            params={{ account }}
            search={{ ...search, example: id }}
            replace
            resetScroll={false}
            className={tabClass}
            aria-current={id === shown?.id ? 'page' : undefined}
          >
            {label}
          </Link>
        ))}
      </TabBar>
      {shown !== undefined && <CodeBlock label={shown.label} code={shown.code} />}
      {shown?.note !== undefined && <p className={style.soft}>{shown.note}</p>}
    </>
  )
}
