import { Toast as BaseToast } from '@base-ui/react/toast'
import { X } from 'lucide-react'
import { useEffect } from 'react'
import { IconButton } from './button.tsx'
import style from './toast.module.css'

const shownMs = 5000

type ToastListProps = {
  /** Takes what shows a title; returns what ends that. */
  readonly listen: (show: (title: string) => void) => () => void
}

export function ToastList({ listen }: ToastListProps) {
  return (
    <BaseToast.Provider limit={3}>
      <BaseToast.Portal>
        <BaseToast.Viewport className={style.viewport}>
          <Shown listen={listen} />
        </BaseToast.Viewport>
      </BaseToast.Portal>
    </BaseToast.Provider>
  )
}

function Shown({ listen }: ToastListProps) {
  const { toasts, add } = BaseToast.useToastManager()
  useEffect(() => listen((title) => add({ title, timeout: shownMs })), [listen, add])
  return toasts.map((toast) => (
    <BaseToast.Root key={toast.id} toast={toast} className={style.toast}>
      <BaseToast.Title className={style.title} />
      <BaseToast.Close render={<IconButton label="Dismiss" look="quiet" size="small" />}>
        <X aria-hidden="true" />
      </BaseToast.Close>
    </BaseToast.Root>
  ))
}
