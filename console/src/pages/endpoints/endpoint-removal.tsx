import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { type Endpoint, endpointsQuery, removeEndpoint } from '../../api/endpoints.ts'
import { Button } from '../../design/button.tsx'
import { Confirm } from '../../design/confirm.tsx'
import { Section } from '../../design/layout.tsx'
import { say } from '../../design/toast.tsx'
import style from './endpoints.module.css'
import { removalEffects } from './removal-effects.ts'

type EndpointRemovalProps = { readonly account: string; readonly endpoint: Endpoint }

/** Deletes an endpoint, and says before what becomes of its data. */
export function EndpointRemoval({ account, endpoint }: EndpointRemovalProps) {
  const queries = useQueryClient()
  const navigate = useNavigate()
  const [asking, setAsking] = useState(false)
  const remove = useMutation({
    mutationFn: () => removeEndpoint(endpoint.id),
    onSuccess: async () => {
      await queries.invalidateQueries(endpointsQuery(account))
      say('Endpoint is being deleted')
      await navigate({ to: '/in/$account/endpoints', params: { account } })
    },
  })
  return (
    <Section
      title="Delete"
      about="It refuses new data at once, delivers what it has, and is then gone. Its files stay in your bucket."
    >
      <div>
        <Button look="danger" onClick={() => setAsking(true)}>
          Delete endpoint
        </Button>
      </div>
      <Confirm
        open={asking}
        onClose={() => setAsking(false)}
        title={`Delete the endpoint “${endpoint.name}”?`}
        action="Delete endpoint"
        typed={endpoint.name}
        call={remove}
        onConfirm={() => remove.mutate()}
      >
        <ul className={style.reasons}>
          {removalEffects(endpoint).map((effect) => (
            <li key={effect}>{effect}</li>
          ))}
        </ul>
      </Confirm>
    </Section>
  )
}
