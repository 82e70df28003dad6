import java.lang.management.ManagementFactory;
import java.time.Duration;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** Reads a topic as a member of a share group: SERVERS TOPIC GROUP MODE WARM_UP RECORDS; prints one line of JSON. */
public final class ShareReader {
    public static void main(String[] arguments) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", arguments[0]);
        settings.put("group.id", arguments[2]);
        settings.put("share.acknowledgement.mode", arguments[3]);
        settings.put("key.deserializer", ByteArrayDeserializer.class.getName());
        settings.put("value.deserializer", ByteArrayDeserializer.class.getName());
        boolean explicit = arguments[3].equals("explicit");
        try (KafkaShareConsumer<byte[], byte[]> consumer = new KafkaShareConsumer<>(settings)) {
            consumer.subscribe(List.of(arguments[1]));
            read(consumer, explicit, Long.parseLong(arguments[4]));
            long cpu = cpuNanos();
            long began = System.nanoTime();
            long count = read(consumer, explicit, Long.parseLong(arguments[5]));
            consumer.commitSync();
            double seconds = (System.nanoTime() - began) / 1e9;
            System.out.printf(
                "{\"records\": %d, \"seconds\": %.6f, \"cpu_seconds\": %.6f}%n", count, seconds, (cpuNanos() - cpu) / 1e9);
        }
    }

    private static long read(KafkaShareConsumer<byte[], byte[]> consumer, boolean explicit, long records) {
        long count = 0;
        while (count < records) {
            for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofSeconds(1))) {
                if (explicit) {
                    consumer.acknowledge(record);
                }
                count++;
            }
        }
        return count;
    }

    private static long cpuNanos() {
        return ((com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean()).getProcessCpuTime();
    }
}
