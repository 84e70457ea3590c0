import { useQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useId, useState } from 'react'
import { ApiError } from '../../api/client.ts'
import { createEndpoint, destinationChoicesQuery, endpointsQuery, regionsQuery } from '../../api/endpoints.ts'
import { Button } from '../../design/button.tsx'
import { Dialog } from '../../design/dialog.tsx'
import { SelectField, TextField } from '../../design/field.tsx'
import { Form } from '../../design/form.tsx'
import { Failure } from '../../shell/failure.tsx'
import { useAccount } from '../../shell/session.tsx'
import { useChange } from '../../shell/use-change.ts'
import { destinationChoices, UnvalidatedNote } from './destination-choices.tsx'
import style from './endpoints.module.css'
import { preferredDestination } from './preferred-destination.ts'
import { preferredRegion } from './preferred-region.ts'

type CreateEndpointProps = { readonly open: boolean; readonly onClose: () => void }

/** Asks for what an endpoint needs, and leads to it. */
export function CreateEndpoint({ open, onClose }: CreateEndpointProps) {
  const account = useAccount()
  const navigate = useNavigate()
  const form = useId()
  const destinations = useQuery({ ...destinationChoicesQuery(account), enabled: open })
  const [name, setName] = useState('')
  const [region, setRegion] = useState<string>()
  const [destination, setDestination] = useState<string>()
  const endpoints = useQuery({ ...endpointsQuery(account), enabled: open })
  const regions = useQuery({ ...regionsQuery(account), enabled: open })
  const usual = preferredRegion(regions.data ?? [], endpoints.data?.items ?? []) ?? ''
  const chosen = destination ?? preferredDestination(destinations.data ?? [], endpoints.data?.items ?? []) ?? ''
  // Before that, the proposed region is empty, and the endpoint would get no destination.
  const isLoading = destinations.isLoading || endpoints.isLoading || regions.isLoading
  const create = useChange({
    call: () =>
      createEndpoint({
        region: region ?? usual,
        ...(name === '' ? {} : { name }),
        ...(chosen === '' ? {} : { destination_id: chosen }),
      }),
    leave: onClose,
    changes: [endpointsQuery(account).queryKey],
    done: ({ id }) => navigate({ to: '/in/$account/endpoints/$endpoint', params: { account, endpoint: id } }),
  })
  const errorOf = (path: string) => (create.error instanceof ApiError ? create.error.fieldError(path) : undefined)
  const isShown = ['name', 'region', 'destination_id'].some((field) => errorOf(field) !== undefined)
  return (
    <Dialog
      open={open}
      onClose={onClose}
      title="Create endpoint"
      about="It takes events within seconds."
      actions={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button look="primary" type="submit" form={form} busy={create.isPending} disabled={isLoading}>
            Create endpoint
          </Button>
        </>
      }
    >
      <Form id={form} className={style.form} onSubmit={() => create.mutate()} onChange={() => create.isError && create.reset()}>
        <TextField
          label="Name"
          value={name}
          onChange={setName}
          maxLength={128}
          placeholder="checkout events"
          hint="Left empty, it gets a random one."
          error={errorOf('name')}
        />
        <TextField
          label="Region"
          value={region ?? usual}
          onChange={setRegion}
          required
          pattern="[a-z]{3}"
          hint={`Where its nodes are${regions.data === undefined || regions.data.length === 0 ? '' : `: ${regions.data.join(', ')}`}. It cannot change later.`}
          error={errorOf('region')}
        />
        <SelectField
          label="Destination"
          value={chosen}
          onChange={setDestination}
          hint="The bucket that it delivers to. It can change later."
          error={errorOf('destination_id')}
          choices={[...destinationChoices(destinations.data), { value: '', label: 'None yet: keep data on the nodes' }]}
        />
        <UnvalidatedNote destination={destinations.data?.find(({ id }) => id === chosen)} />
        {create.isError && !isShown && <Failure error={create.error} />}
      </Form>
    </Dialog>
  )
}
